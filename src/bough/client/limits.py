"""Every limit of the client, and what it is unless given. Times are seconds."""

TIMEOUT = 2.0
"""For a try: to connect, to send, and between two pieces of the answer."""
LONG_TIMEOUT = 300.0
"""The least for a try of what may take long: all but decisions, rewards and health."""
RETRIES = 4
MOST_RETRIES = 100
DEADLINE = 30.0
"""For all tries together."""
FIRST_DELAY = 0.1
"""The most before the second try; before each later one it is twice as much, up to `LONGEST_DELAY`."""
LONGEST_DELAY = 5.0
LONGEST_RETRY_AFTER = 60.0
"""A service that asks for more has the client give up at once."""
SHORTEST_TIMEOUT = 0.01
"""For a last try just before the deadline."""

MOST_REWARDS = 10_000
"""What the service takes in one request."""
REWARDS_PER_REQUEST = 1_000
BATCH_SIZE = 500
BATCH_SECONDS = 1.0

CONNECTIONS = 100
KEEP_ALIVE = 4.0
"""How long an idle connection is kept: uvicorn closes it after 5 s, and the client should be the first."""

SHOWN = 200
"""Characters of an odd answer that an error shows."""
