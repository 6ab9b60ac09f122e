//! The words of which titles, names and pages are made.

/// A word that many pages contain. The books of a category are ordered by the number of pages with
/// this word.
pub(crate) const FAVOURITE: &str = "favourite";

pub(super) const TITLE_ADJECTIVES: [&str; 24] = [
    "Amber", "Broken", "Crooked", "Distant", "Early", "Faithful", "Golden", "Hidden", "Idle",
    "Jagged", "Kindly", "Lonely", "Marble", "Narrow", "Old", "Patient", "Quiet", "Restless",
    "Silver", "Tidal", "Uneven", "Velvet", "Winding", "Yellow",
];

pub(crate) const TITLE_NOUNS: [&str; 24] = [
    "Anchor", "Bridge", "Compass", "Dwelling", "Estuary", "Furnace", "Garden", "Harbour", "Island",
    "Journey", "Kingdom", "Lantern", "Mirror", "Notebook", "Orchard", "Passage", "Quarry",
    "Railway", "Station", "Theatre", "Umbrella", "Voyage", "Window", "Workshop",
];

pub(crate) const AUTHORS: [&str; 20] = [
    "Ada Merton",
    "Bruno Falk",
    "Clara Oduya",
    "Dario Venn",
    "Elsa Thornby",
    "Felix Amado",
    "Greta Lund",
    "Hugo Paredes",
    "Irma Calder",
    "Jonas Weir",
    "Karla Brandt",
    "Leo Sandoval",
    "Mina Okafor",
    "Nils Harrow",
    "Olga Petrie",
    "Paulo Reis",
    "Rosa Tamm",
    "Simon Achter",
    "Tessa Vogel",
    "Ulla Kern",
];

/// The syllables of words. Each is one consonant and one vowel, so that different sequences of
/// syllables give different words.
pub(super) const SYLLABLES: [&str; 40] = [
    "bu", "be", "bi", "bo", "da", "de", "di", "do", "fa", "fe", "ga", "go", "ha", "he", "ka", "ki",
    "la", "le", "li", "lo", "ma", "me", "mi", "mo", "na", "ne", "ni", "no", "pa", "po", "ra", "re",
    "ro", "sa", "se", "so", "ta", "te", "to", "va",
];
