//! The learned state of a gateway as bytes: for the disk, and for the process that takes over.
//!
//! Sessions are stored as keyed hashes of their cookies, and the key is stored with them. So a
//! reader of these bytes can tell whether a known cookie was served here. Classes are stored by
//! name, because their numbers differ from process to process. Operators' decisions are included
//! only for the process that takes over.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use bywash_control::Note;
use bywash_engine::{
    ClassId, ClassSet, MeanService, PopulationKey, Remembered, RememberedPopulations, SessionKey,
};
use bywash_handover::MOST_STATE;
use bywash_history::{Columns, History, Range};
use bywash_units::TimeSpan;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::counts::{self, NamedCounts};
use crate::driver::Knowledge;
use crate::process::secret::Secret;
use crate::process::wall_clock::{self, unix_ms};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::quarantine::Inherited;
use crate::telemetry::history::HistoryRecorder;

/// The version of the format in which the state is saved. A state in another format is not read.
const FORMAT: u64 = 1;

/// The state that an earlier process had learned, as read from its bytes.
pub(crate) struct Learned {
    /// The key of the hashes of sessions' cookies.
    secret: Secret,
    mean_service: MeanService,
    /// The time at which the state was saved, in milliseconds since 1970.
    at: u64,
    /// The counts of classes and signals at the time `at`.
    counts: NamedCounts,
    /// The populations of clients at the time `at`.
    populations: RememberedPopulations,
    /// The remembered sessions, with their ages at the time `at`.
    sessions: Vec<Remembered>,
    /// The name of the cookie that the gateway had picked to identify sessions; `None` if it had
    /// picked none.
    session_cookie: Option<String>,
    history: History,
}

/// Operators' decisions in the process that hands over.
///
/// The names of the fields stay the same in every format, and other fields are ignored. So a
/// program of another version keeps a bypass, whatever else it cannot read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Decided {
    /// The text of the overrides.
    overrides: Option<String>,
    /// The text of the rule store.
    elephants: Option<String>,
    /// The decisions that hold at all gateways of the fleet: an array of notes.
    fleet: Value,
    /// The folder in which the process that hands over saved the overrides and the rule store;
    /// `None` if it has no state directory.
    #[serde(rename = "decided_in")]
    directory: Option<PathBuf>,
}

impl Decided {
    /// Reads the decisions from the bytes that [`write()`] returned. Returns an error if the bytes
    /// are not a JSON object.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Hands the decisions to the stores of the gateway, which puts them in force when it opens.
    pub(crate) fn restore(self, shared: &Shared) {
        let Self { overrides, elephants, fleet, directory } = self;
        // The gateway does not need them: it gets those that it lacks from the other gateways.
        for note in Vec::<Note>::deserialize(fleet).unwrap_or_default() {
            shared.audit.notes().fleet.learn(wall_clock::now(), &note);
        }
        let inherited = Inherited::kept_in(directory);
        if let Some(overrides) = overrides {
            shared.overrides().inherit(&overrides, inherited.clone());
        }
        if let Some(elephants) = elephants {
            shared.elephants.findings().store.inherit(&elephants, inherited);
        }
    }
}

/// The reader for which the bytes are written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum For {
    /// The process that starts next, which reads the bytes from the disk. Decisions are not
    /// included: they have their own files.
    Disk,
    /// The process that takes over while this one still runs. The bytes include the decisions.
    Successor,
}

/// Returns all state that is worth keeping, as JSON of at most [`MOST_STATE`] bytes. Longer state
/// would neither be taken over nor be read at a start, so the oldest sessions are left out if
/// necessary.
pub(crate) fn write(shared: &Shared, settings: &Settings, reader: For) -> Vec<u8> {
    let Knowledge { sessions, mean_service, counts, populations } = shared.driver.learned();
    let Secret(first, second) = shared.secret;
    let mut rest = json!({
        "format": FORMAT,
        "secret": [first, second],
        "pace": [mean_service.mean().as_nanos(), mean_service.seen()],
        "at": unix_ms(),
        "session_cookie": settings.session_cookie.as_ref().and_then(|cookie| cookie.picked()),
        "populations": SavedPopulations::of(populations),
    });
    for (name, value) in counts::write(&counts, settings) {
        rest[name] = value;
    }
    if let For::Successor = reader {
        rest["overrides"] = shared.overrides().get().text().into();
        rest["fleet"] = json!(shared.audit.notes().fleet.known(wall_clock::now()));
        rest["elephants"] = shared.elephants.findings().store.get().text().into();
        let state = settings.config.state.as_ref();
        let directory = state.map(|state| Inherited::place(&state.directory));
        rest["decided_in"] = directory.as_deref().and_then(Path::to_str).into();
    }
    let history = with_history(rest.to_string(), &shared.history_recorder);
    with_sessions(history, &sessions, MOST_STATE as usize).into_bytes()
}

/// [`RememberedPopulations`] as JSON.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedPopulations {
    mean: f64,
    lift_of_unknown: f64,
    others: [f64; 2],
    list: Vec<(u64, [f64; 3])>,
}

impl SavedPopulations {
    fn of(remembered: RememberedPopulations) -> Self {
        let RememberedPopulations { mean, lift_of_unknown, others, populations } = remembered;
        let list = populations.into_iter().map(|(key, numbers)| (key.0, numbers)).collect();
        Self { mean, lift_of_unknown, others, list }
    }

    fn read(self) -> RememberedPopulations {
        let Self { mean, lift_of_unknown, others, list } = self;
        let populations =
            list.into_iter().map(|(key, numbers)| (PopulationKey(key), numbers)).collect();
        RememberedPopulations { mean, lift_of_unknown, others, populations }
    }
}

/// Adds the history to the JSON object `rest`. The history is added as text, because its many
/// numbers would take fifty times the memory as JSON values.
fn with_history(rest: String, history_recorder: &HistoryRecorder) -> String {
    let mut text = rest;
    text.pop();
    let columns = |range| {
        let columns = history_recorder.history().columns(range, 0);
        serde_json::to_string(&columns).expect("made of numbers, texts and names")
    };
    let (seconds, minutes) = (columns(Range::Seconds), columns(Range::Minutes));
    // Writing to a String cannot fail.
    let _ = write!(text, ",\"history\":{{\"seconds\":{seconds},\"minutes\":{minutes}}}}}");
    text
}

/// Adds the sessions to the JSON object `rest`. They must be sorted by age, the oldest first. If
/// the result would exceed `most` bytes, the oldest sessions are left out.
fn with_sessions(rest: String, sessions: &[Remembered], most: usize) -> String {
    const KEY: &str = ",\"sessions\":[";
    let mut text = rest;
    text.pop();
    let room = most.saturating_sub(text.len() + KEY.len() + "]}".len());
    let mut line = String::new();
    let fits = |left: &mut usize, session: &Remembered| {
        line.clear();
        write_session(&mut line, session);
        *left = left.checked_sub(line.len())?;
        Some(())
    };
    let kept = sessions.iter().rev().scan(room, fits).count();
    text.push_str(KEY);
    sessions.iter().skip(sessions.len() - kept).for_each(|one| write_session(&mut text, one));
    // Remove the last comma.
    if kept > 0 {
        text.pop();
    }
    text.push_str("]}");
    text
}

fn write_session(text: &mut String, session: &Remembered) {
    let Remembered { key, age, served } = session;
    // Writing to a String cannot fail.
    let _ = write!(text, "[{},{},{}],", key.0, age.as_millis(), served.bits());
}

/// The fields that [`write()`] writes, decisions excepted. The history is left as text, because it
/// is large.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SavedState<'t> {
    format: Value,
    secret: Value,
    pace: Value,
    at: Value,
    classes: Value,
    counts: Option<Value>,
    signals: Option<Value>,
    session_cookie: Option<String>,
    populations: SavedPopulations,
    #[serde(borrow)]
    history: Option<&'t RawValue>,
    sessions: Value,
}

#[derive(Deserialize)]
struct KeptHistory {
    seconds: Columns,
    minutes: Columns,
}

/// Reads the saved history. Returns an empty history if it cannot be parsed, because no decision
/// depends on it.
fn read_history(text: &RawValue) -> History {
    let kept: Option<KeptHistory> = serde_json::from_str(text.get()).ok();
    kept.map_or_else(History::default, |kept| History::restored(kept.seconds, kept.minutes))
}

impl Learned {
    /// Reads the learned state from the bytes that [`write()`] returned. Returns `None` if the
    /// bytes are not in that format.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let saved: SavedState<'_> = serde_json::from_slice(bytes).ok()?;
        if saved.format != FORMAT {
            return None;
        }
        let number = |value: &Value| value.as_u64();
        let (secret, pace) = (&saved.secret, &saved.pace);
        let mean = TimeSpan::from_nanos(number(&pace[0])?);
        let session = |session: &Value| {
            Some(Remembered {
                key: SessionKey(number(&session[0])?),
                age: TimeSpan::from_millis(number(&session[1])?),
                served: ClassSet::from_bits(number(&session[2])?),
            })
        };
        Some(Self {
            secret: Secret(number(&secret[0])?, number(&secret[1])?),
            mean_service: MeanService::new(mean, u32::try_from(number(&pace[1])?).ok()?),
            at: number(&saved.at)?,
            counts: NamedCounts::read(
                &saved.classes,
                saved.counts.as_ref(),
                saved.signals.as_ref(),
            )?,
            sessions: saved.sessions.as_array()?.iter().map(session).collect::<Option<_>>()?,
            populations: saved.populations.read(),
            session_cookie: saved.session_cookie,
            history: saved.history.map_or_else(History::default, read_history),
        })
    }

    pub(crate) const fn secret(&self) -> Secret {
        self.secret
    }

    /// Restores the learned state into the gateway: sessions, counts, populations, history and the
    /// session cookie. Returns the number of sessions that the engine has restored.
    pub(crate) fn restore(self, shared: &Shared, settings: &Settings) -> usize {
        let numbers = self.counts.numbers(settings);
        let number = |class: ClassId| numbers.get(class.index()).copied().flatten();
        // If the clock was set back, sessions do not get younger.
        let since = TimeSpan::from_millis(unix_ms().saturating_sub(self.at));
        let remembered = self.sessions.iter().map(|session| Remembered {
            key: session.key,
            age: session.age + since,
            served: session.served.iter().filter_map(number).collect(),
        });
        let sessions = remembered.collect();
        let counts = self.counts.numbered(settings);
        let populations = self.populations.aged(since);
        let Self { mean_service, session_cookie, history, .. } = self;
        if let (Some(cookie), Some(name)) = (&settings.session_cookie, session_cookie) {
            cookie.restore_pick(&name);
        }
        shared.history_recorder.restore(history);
        shared.driver.restore(Knowledge { sessions, mean_service, counts, populations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u64) -> Remembered {
        let age = TimeSpan::from_millis(1000 - number);
        Remembered { key: SessionKey(u64::MAX - number), age, served: ClassSet::from_bits(5) }
    }

    const REST: &str = r#"{"format":1,"secret":[1,2],"pace":[3,4],"at":5,"classes":["a","b","c"]}"#;

    #[test]
    fn of_too_many_sessions_the_youngest_are_kept_and_can_be_read() {
        let sessions: Vec<_> = (0..100).map(session).collect();
        let mut kept_before = 0;
        for most in 0..4000 {
            let text = with_sessions(REST.into(), &sessions, most);
            let read = Learned::read(text.as_bytes()).unwrap();
            let kept = read.sessions.len();
            assert!(text.len() <= most.max(REST.len() + 15), "{} of {most}", text.len());
            assert_eq!(read.sessions, sessions[100 - kept..]);
            assert!(kept >= kept_before);
            kept_before = kept;
        }
        assert_eq!(kept_before, 100);
    }

    #[test]
    fn what_is_no_state_is_not_read() {
        for bytes in [&b""[..], b"{}", b"[1]", b"\xff", br#"{"format":2}"#, br#"{"format":1}"#] {
            assert!(Learned::read(bytes).is_none(), "{}", String::from_utf8_lossy(bytes));
        }
    }
}
