"""The words that the demo's shop is made of."""

from __future__ import annotations

DEPARTMENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "Kitchen": (
        ("Kettles", "kettle"), ("Pans", "pan"), ("Bowls", "bowl"), ("Knives", "knife"), ("Mugs", "mug"),
        ("Teapots", "teapot"), ("Chopping boards", "chopping board"),
    ),
    "Garden": (
        ("Spades", "spade"), ("Planters", "planter"), ("Benches", "bench"), ("Lanterns", "lantern"),
        ("Watering cans", "watering can"), ("Bird houses", "bird house"), ("Trellises", "trellis"),
    ),
    "Bedroom": (
        ("Blankets", "blanket"), ("Pillows", "pillow"), ("Bedside tables", "bedside table"), ("Wardrobes", "wardrobe"),
        ("Mattresses", "mattress"), ("Alarm clocks", "alarm clock"), ("Night lights", "night light"),
    ),
    "Bathroom": (
        ("Towels", "towel"), ("Mirrors", "mirror"), ("Soap dishes", "soap dish"), ("Bath mats", "bath mat"),
        ("Shower curtains", "shower curtain"), ("Laundry baskets", "laundry basket"), ("Brushes", "brush"),
    ),
    "Living room": (
        ("Sofas", "sofa"), ("Armchairs", "armchair"), ("Rugs", "rug"), ("Bookcases", "bookcase"), ("Vases", "vase"),
        ("Cushions", "cushion"), ("Coffee tables", "coffee table"),
    ),
    "Lighting": (
        ("Floor lamps", "floor lamp"), ("Desk lamps", "desk lamp"), ("Pendants", "pendant"), ("Candles", "candle"),
        ("Wall lights", "wall light"), ("Lampshades", "lampshade"), ("Fairy lights", "string of fairy lights"),
    ),
    "Office": (
        ("Desks", "desk"), ("Office chairs", "office chair"), ("Notebooks", "notebook"), ("Pen pots", "pen pot"),
        ("Shelves", "shelf"), ("Filing boxes", "filing box"), ("Pinboards", "pinboard"),
    ),
    "Children": (
        ("Building blocks", "set of building blocks"), ("Kites", "kite"), ("Puzzles", "puzzle"),
        ("Doll's houses", "doll's house"), ("Rocking horses", "rocking horse"), ("Scooters", "scooter"),
        ("Balls", "ball"),
    ),
    "Travel": (
        ("Suitcases", "suitcase"), ("Backpacks", "backpack"), ("Umbrellas", "umbrella"), ("Flasks", "flask"),
        ("Neck pillows", "neck pillow"), ("Luggage tags", "luggage tag"), ("Hammocks", "hammock"),
    ),
    "Sports": (
        ("Yoga mats", "yoga mat"), ("Skipping ropes", "skipping rope"), ("Rackets", "racket"), ("Helmets", "helmet"),
        ("Dumbbells", "dumbbell"), ("Skates", "pair of skates"), ("Water bottles", "water bottle"),
    ),
    "Pets": (
        ("Dog beds", "dog bed"), ("Cat trees", "cat tree"), ("Collars", "collar"), ("Food bowls", "food bowl"),
        ("Leads", "lead"), ("Carriers", "carrier"), ("Scratching posts", "scratching post"),
    ),
    "Music": (
        ("Ukuleles", "ukulele"), ("Drums", "drum"), ("Music stands", "music stand"),
        ("Headphones", "pair of headphones"),
        ("Record players", "record player"), ("Metronomes", "metronome"), ("Recorders", "recorder"),
    ),
}  # fmt: skip
"""Departments, with what their categories are called, and one thing of each."""

COLOURS = (
    "Blue",
    "Green",
    "Red",
    "Yellow",
    "White",
    "Black",
    "Grey",
    "Amber",
    "Teal",
    "Coral",
    "Ivory",
    "Plum",
    "Olive",
)
MATERIALS = (
    "enamel", "oak", "linen", "steel", "glass", "wool", "bamboo", "copper", "cotton", "cork", "walnut", "ceramic",
    "leather", "felt", "rattan", "marble",
)  # fmt: skip
STYLES = ("Small", "Large", "Slim", "Wide", "Folding", "Vintage", "Modern", "Rustic")
