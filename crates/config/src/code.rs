//! Stable codes of problems. A code never changes its meaning, because people search for it.
//!
//! Codes `0xx` are about one value or key; codes `1xx` are about values that contradict each other.
//! A code with `E` prevents the start, and a code with `W` does not.

use crate::problem::Severity;

/// A kind of problem: its code and its description.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) name: &'static str,
    /// The description in one line, for the reference.
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

/// The codes of former versions whose problem can no longer occur. A retired code is never used
/// again.
pub(crate) const RETIRED: &[(&str, &str)] =
    &[("E013", "https to the upstream was not supported. It is supported now.")];

codes! {
    UNREADABLE = "E000", "The file cannot be read: it is missing, too large or not UTF-8.";
    SYNTAX = "E001", "The text is not TOML.";
    UNKNOWN_KEY = "E002", "The table has no such key.";
    WRONG_TYPE = "E003", "The value has the wrong type, for example a number for a text.";
    BAD_VALUE = "E004",
        "The value has the right type and is not allowed, for example out of range.";
    MISSING = "E005", "A required key is missing.";
    VERSION = "E006", "The file is written for another version of bywash.";
    DUPLICATE = "E007", "The same key occurs twice in one table.";
    UNKNOWN_POLICY = "E010", "There is no such policy.";
    FOREIGN_PARAMETER = "E011", "The parameter belongs to another policy.";
    SERVER = "E012", "A server is not http://HOST:PORT, https://, h2c:// or unix:/PATH.";
    SESSION = "E014", "The session is neither cookie:NAME, auto, token nor none.";
    ACCESS_LOG = "E015", "The access log is neither stdout, off nor a path.";
    PATTERN = "E016", "The text is not a pattern METHOD /path?parameters.";
    CLASS_NAME = "E017", "The name of a class is not [a-z][a-z0-9_-]* with at most 32 characters.";
    CLASSES = "E018", "There are more classes than the engine has room for.";
    NETWORK = "E019", "The text is not a network (ADDRESS/BITS) or an address.";
    PAGE = "E020", "The page cannot be read: it is missing, larger than 64 KiB or not UTF-8.";
    HEALTH_PATH = "E021", "The path of the health check is not a path in plain ASCII.";
    TLS_NAME = "E022", "The name for servers' certificates is not a host name.";
    TRACES = "E023", "The collector of traces is not http://HOST:PORT.";
    FIELD_NAME = "E024", "The text is not the name of a field, or names a field with another use.";
    TOKEN_KEYS = "E025",
        "The file of token keys cannot be read, has no valid key, or is readable by all users.";
    TOKEN_COOKIE = "E026",
        "The text is not the name of a cookie, or names the application's session cookie.";
    SIGNAL = "E027", "The text is not a signal, or the signal is listed twice.";
    RETRY_HEADER = "E028", "The text is not a field with a number: NAME>NUMBER.";
    STOPD_SOCKET = "E029", "The text is not the path of a socket.";
    USER = "E035", "This machine has no such user.";
    DATABASE = "E036", "The text is not the address of a database.";
    DATABASE_NAME = "E037",
        "The name of a database is not letters, digits, _ and - (at most 32), or is `self`.";
    DATABASES = "E038", "There are too many databases.";
    DATABASE_USER = "E039", "The text is not the name of a database user.";
    LEVEL_NAME = "E040",
        "The name of a level is not a to z, 0 to 9 and - (at most 32), or is listed twice.";
    LEVEL_KEYS = "E041",
        "The file of level keys cannot be read, has no valid key, or is readable by all users.";
    RESOURCES = "E042", "There are too many resources.";
    THROTTLES = "E043", "There are too many rules.";
    PART_NAME = "E044", "The name of a resource, of a rule or of an agent is not valid.";
    RESOURCE = "E045", "This host has no such resource.";
    REQUESTS = "E046", "The text is not a pattern of requests.";
    EXPORTER = "E047",
        "The source of a resource is neither http://HOST:PORT/PATH of an exporter nor a process \
         file.";
    WHY = "E048",
        "The reason for a rule has no words, more than 200 characters or more than one line.";
    HOST = "E049", "The text is not a host.";
    FIELD = "E050", "The text is not a header field of a request.";
    SUCCESS = "E051", "The text is not a condition on an answer.";
    FLEET_KEYS = "E052",
        "The file of fleet keys cannot be read, has no valid key, or is readable by all users.";
    AGENTS = "E053", "There are too many agents.";
    AGENT_KEYS = "E054", "The file of an agent's keys cannot be read, or has no valid key.";
    CERTIFICATE_NAME = "E055", "The text is not a name in a certificate.";
    STOPD_UPSTREAM = "E056", "The text is not the address of a stop daemon.";
    TIE = "E101", "The same pattern occurs twice, so a request would belong to two classes.";
    THRESHOLDS = "E102", "The lower threshold is above the upper one.";
    UTILITY = "W104", "A transaction is worth less than browsing, so browsing would go first.";
    ADMIN = "E106", "Other machines can reach an admin address that must be local.";
    SAME_ADDRESS = "E107", "Two listeners have the same address.";
    LOOP = "E108", "A server is this gateway itself.";
    REQUIRES = "E109", "`requires` names no class, or the class itself.";
    OTHER_MATCH = "E110", "`other` gets what no pattern matches, so it takes no patterns.";
    REQUIRES_OF_BROWSING = "W111", "`requires` has no effect on a class of browsing.";
    BUFFERS = "W112", "The buffer for all bodies is smaller than the buffer for one.";
    NO_CERTIFICATE = "E113", "There is an address for TLS without a certificate.";
    NO_HTTPS = "W114", "There are certificates without an address for TLS.";
    PAIRS = "E115", "There are not as many keys as certificates.";
    SAME_SERVER = "E116", "The same server is listed twice, so it would get twice its share.";
    HALF_PAIR = "E117", "A certificate for servers has no key, or the key has no certificate.";
    NO_TLS_SERVER = "W118", "There are TLS settings for servers, and no https server.";
    HEALTH_PACE = "W119", "The next probe begins before a server must have answered the last one.";
    EVERYBODY = "W120", "The gateway trusts every client on the Internet as a hop.";
    SLOTS = "E127", "`upstream.limit` and `[concurrency]` set different initial numbers of slots.";
    BOUNDS = "E128", "The least number of slots is above the most.";
    START = "E130", "The initial number of slots is not between the least and the most.";
    UNREACHED = "W121", "A timeout is longer than the total, so it has no effect.";
    NO_REVENUE = "W122",
        "A key about successes has no effect: a success has no revenue and proves nothing.";
    NO_TOKEN_KEYS = "E123", "The token is the session, and there are no keys to sign it.";
    TOKEN_UNUSED = "W124", "There are keys for tokens, and no sessions.";
    NEVER_RETURNING = "W125",
        "No client can show the signal `returning`: there are no tokens, or no class has revenue.";
    LEARNS_NOTHING = "W129", "The policy ranks by worth, and no class has revenue.";
    RUN_BOUNDS = "E131", "The least running time of a class is above the most.";
    NOT_CANCELLABLE = "W132", "The class is not cancellable, so its running times have no effect.";
    WATERMARKS = "E133", "The low watermark of loss is above the high one.";
    RUN_UNREACHED = "W134",
        "A server must have answered before the longest running time of the class.";
    NO_SUCH_LEVEL = "E135", "There is no level of this name.";
    NO_LEVEL_KEYS = "E136", "There are levels and no keys to sign them.";
    SHARED_KEYS = "E137",
        "Levels and session tokens share a key, so a verifier of levels could make tokens.";
    LEVELS_UNUSED = "W138", "There are no levels, so settings of levels have no effect.";
    NO_CUSTOMER = "W139", "A field names the customer's level, and there are no trusted hops.";
    IDLE = "E140", "The use of a resource without requests is not below its capacity.";
    ENFORCE_PERCENT_OBSERVED = "W141",
        "`enforce_percent` has no effect on a class that only observes.";
    SPELLING = "W142",
        "A page of an enforced class may escape control if its path is written in other case.";
    JSON_OBSERVED = "W143",
        "Where a class only observes, it does not see JSON conditions in compressed answers.";
    SHARED_AGENT_KEY = "E145", "Two agents have the same key.";
    AGENTS_UNUSED = "W146", "Populations are not told apart, so agents have no effect.";
    AGENT_WITHOUT_KEYS = "W147", "An agent has no keys, so no request can be one of its own.";
    FLEET = "E144", "The settings of a fleet contradict each other.";
    STOPD_NETWORK = "E148",
        "The settings of the stop daemon for other machines are incomplete or contradict each \
         other.";
    DATABASE_TLS = "E149", "The TLS settings of a database are incomplete, or have no effect.";
    NO_TOKENS = "W126",
        "The token is the session, and no class gives one: all classes only observe.";
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
