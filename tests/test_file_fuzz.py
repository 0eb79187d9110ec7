"""No file, however damaged, is more than a ValueError; file_fuzz.py makes them, and says what must come of each."""

import file_fuzz


def test_a_thousand_damaged_files_load_as_what_they_were_or_are_refused(tmp_path):
    summary = file_fuzz.run(1_000, 1, tmp_path)
    assert not summary.failures, str(summary)
    made = {mutation.__name__.replace("_", " ") for mutation in (*file_fuzz.COMMON, *file_fuzz.COSTLY)}
    assert summary.outcomes.keys() == made
    total = sum(summary.outcomes.values(), start=type(summary.outcomes["flipped bits"])())
    assert total["refused"] > 500
    assert total["the same"] > 50
    assert total["other data"] > 20
