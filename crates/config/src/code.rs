//! Stable codes of problems. A code never changes its meaning, because people search for it.
//!
//! Codes `0xx` are about one value or key; codes `1xx` are about values that contradict each other.
//! An `E` prevents the start, a `W` does not.

use crate::problem::Severity;

/// A kind of problem: its code and its description.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) name: &'static str,
    /// One-line description for the reference.
    pub(crate) about: &'static str,
}

impl Code {
    pub(crate) fn severity(&self) -> Severity {
        if self.name.starts_with('W') { Severity::Warning } else { Severity::Error }
    }
}

macro_rules! codes {
    ($($constant:ident = $name:literal, $about:literal;)*) => {
        $(pub(crate) const $constant: Code = Code { name: $name, about: $about };)*
        /// All codes in use.
        pub(crate) const ALL: &[Code] = &[$($constant),*];
    };
}

/// Codes of former versions whose problem can no longer occur. They are never reused.
pub(crate) const RETIRED: &[(&str, &str)] =
    &[("E013", "https to the upstream was not supported; it is now.")];

codes! {
    UNREADABLE = "E000", "The file cannot be read: it is missing, too large or not UTF-8.";
    SYNTAX = "E001", "The text is not TOML.";
    UNKNOWN_KEY = "E002", "There is no such key in this table.";
    WRONG_TYPE = "E003", "The value is of another type: a number for a text, a text for a table.";
    BAD_VALUE = "E004", "The value is of the right type and not allowed: out of range, say.";
    MISSING = "E005", "A required key is missing.";
    VERSION = "E006", "The file is written for another version of bywash.";
    DUPLICATE = "E007", "The same key stands twice in one table.";
    UNKNOWN_POLICY = "E010", "There is no such policy.";
    FOREIGN_PARAMETER = "E011", "The parameter belongs to another policy.";
    SERVER = "E012", "A server is not http://HOST:PORT, https://, h2c:// or unix:/PATH.";
    SESSION = "E014", "The session is neither cookie:NAME, auto, token nor none.";
    ACCESS_LOG = "E015", "The access log is neither stdout, off nor a path.";
    PATTERN = "E016", "The text is no pattern: METHOD /path?parameters.";
    CLASS_NAME = "E017", "A class name is [a-z][a-z0-9_-]*, at most 32 characters.";
    CLASSES = "E018", "There are more classes than the engine has room for.";
    NETWORK = "E019", "The text is no network: ADDRESS/BITS, or an address.";
    PAGE = "E020", "The page cannot be read: it is missing, larger than 64 KiB or not UTF-8.";
    HEALTH_PATH = "E021", "What servers are asked for is no path of plain ASCII.";
    TLS_NAME = "E022", "The name that a server's certificate must have is none.";
    TRACES = "E023", "The collector of traces is not http://HOST:PORT.";
    FIELD_NAME = "E024", "The text is no name of a field, or of one that is needed for something else.";
    TOKEN_KEYS = "E025", "The keys of session tokens cannot be read, are none, or everybody may read them.";
    TOKEN_COOKIE = "E026", "The text is no name of a cookie, or that of the application's.";
    SIGNAL = "E027", "The text is no signal, or stands twice.";
    RETRY_HEADER = "E028", "The text is no field with a number: NAME>NUMBER.";
    SENTRY_SOCKET = "E029", "The text is no path of a socket.";
    USER = "E035", "There is no such user of this machine.";
    DATABASE = "E036", "The text does not say where a database is.";
    DATABASE_NAME = "E037", "A database's name is of letters, digits, _ and -, at most 32; `self` is taken.";
    DATABASES = "E038", "There are more databases than can be.";
    DATABASE_USER = "E039", "The text is no name of a user of a database.";
    LEVEL_NAME = "E040", "A level's name is of a to z, 0 to 9 and -, at most 32, and stands once.";
    LEVEL_KEYS = "E041", "The keys of levels cannot be read, are none, or everybody may read them.";
    RESOURCES = "E042", "There are more resources than are looked at.";
    THROTTLES = "E043", "There are more rules than a request is held against.";
    PART_NAME = "E044", "A resource or a rule has a name that cannot be.";
    RESOURCE = "E045", "This host has no such resource.";
    REQUESTS = "E046", "This is no pattern of requests.";
    EXPORTER = "E047", "A resource is read neither from an exporter, http://HOST:PORT/PATH, nor of the process of a file.";
    WHY = "E048", "The reason of a rule has no words, is longer than 200 characters or more than a line.";
    HOST = "E049", "This is no host.";
    FIELD = "E050", "This is no field that a request has.";
    SUCCESS = "E051", "This is no condition of an answer.";
    TIE = "E101", "The same pattern stands twice, so a request would be of two classes.";
    THRESHOLDS = "E102", "The lower threshold lies above the upper one.";
    UTILITY = "W104", "A transaction is worth less than browsing, so browsing would go first.";
    ADMIN = "E106", "The admin address is open to other machines and has no authentication yet.";
    SAME_ADDRESS = "E107", "Two listeners would have the same address.";
    LOOP = "E108", "A server is this proxy itself.";
    AFTER = "E109", "`after` names no class, or the class itself.";
    OTHER_MATCH = "E110", "`other` is what no pattern matches; it has none of its own.";
    AFTER_BROWSE = "W111", "`after` is for transactions; for browsing it does nothing.";
    BUFFERS = "W112", "The buffer for all bodies is smaller than the buffer for one.";
    NO_CERTIFICATE = "E113", "There is an address for TLS and no certificate to show there.";
    NO_HTTPS = "W114", "There are certificates and no address where they would be shown.";
    PAIRS = "E115", "Certificates and keys are not as many, so they do not pair.";
    SAME_SERVER = "E116", "The same server stands twice, so it would get twice its part.";
    HALF_PAIR = "E117", "A certificate for servers without its key, or the key without it.";
    NO_TLS_SERVER = "W118", "Keys for servers that are reached by https, and there is none.";
    HEALTH_PACE = "W119", "A server is asked again before it must have answered.";
    EVERYBODY = "W120", "The whole Internet is among the hops that are believed.";
    SLOTS = "E127", "`upstream.limit` and `[limit]` name two numbers of slots to start with.";
    BOUNDS = "E128", "The least number of slots lies above the most.";
    START = "E130", "The number of slots to start with lies outside of the least and the most.";
    UNREACHED = "W121", "A timeout is longer than the total, so it can never run out.";
    EARNS_NOTHING = "W122", "It says which answers bring something, or how much, and a success brings nothing.";
    NO_TOKEN_KEYS = "E123", "The token is to be the session, and there are no keys to sign one.";
    TOKEN_UNUSED = "W124", "There are keys for tokens and no sessions for them to be about.";
    NEVER_RETURNING = "W125", "Nobody can show that they return: no tokens, or no class that earns.";
    LEARNS_NOTHING = "W129", "The policy ranks by worth, and no class earns anything.";
    RUN_BOUNDS = "E131", "A request would be granted less time at most than at least.";
    NOT_SAFE = "W132", "The class is not safe to stop, so what it grants while running does nothing.";
    WATERMARKS = "E133", "The low watermark of loss lies above the high one.";
    RUN_UNREACHED = "W134", "A server must have answered before a request has run for as long as it may.";
    NO_SUCH_LEVEL = "E135", "There is no level of this name.";
    NO_LEVEL_KEYS = "E136", "There are levels and no keys to sign them with.";
    SHARED_KEYS = "E137", "Levels and session tokens share a key: who verifies the first could make the second.";
    LEVELS_UNUSED = "W138", "There are no levels, so what is said of them does nothing.";
    NO_CUSTOMER = "W139", "A field names the customer's level, and nobody is believed about it.";
    IDLE = "E140", "More of a resource is used without requests than there is.";
    PERCENT_OBSERVED = "W141", "A part of all visitors is to be enforced of a class that only observes.";
    SPELLING = "W142", "A class is enforced, and a page of it in other letters would only be observed.";
    JSON_OBSERVED = "W143", "A success is a field of a JSON answer, and the class only observes: it does not see compressed ones.";
    NO_TOKENS = "W126", "The token is to be the session, and no class gives one: all only observe.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_one_meaning_for_ever() {
        let numbers = ALL.iter().map(|code| code.name).chain(RETIRED.iter().map(|(name, _)| *name));
        let mut numbers: Vec<&str> = numbers.map(|name| &name[1..]).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
    }
}
