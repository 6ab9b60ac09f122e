//! What a gateway has learned, as bytes: for the disk, and for the process that takes over.
//!
//! Sessions are remembered by keyed hashes of their cookies, so the key belongs to it: whoever can
//! read this can tell whether a cookie they know was served here, and nothing else. Classes are
//! kept by name, as their numbers differ from process to process.

use bywash_engine::{ClassId, ClassSet, Pace, Remembered, SessionKey};
use bywash_units::Span;
use serde_json::{Value, json};

use crate::access_log::wall_clock_ms;
use crate::settings::Settings;
use crate::shared::{Secret, Shared};

/// The format of what is written. Another one is not read.
const FORMAT: u64 = 1;

/// What was learned by a process before this one.
pub(crate) struct Learned {
    secret: Secret,
    pace: Pace,
    /// When it was written down, in milliseconds since 1970.
    at: u64,
    classes: Vec<String>,
    sessions: Vec<Remembered>,
}

/// Everything that is worth keeping.
pub(crate) fn write(shared: &Shared, settings: &Settings) -> Vec<u8> {
    let (sessions, pace) = shared.driver.learned();
    let names: Vec<&str> = settings.config.classes.iter().map(|class| &*class.class.name).collect();
    let session = |session: &Remembered| {
        json!([session.key.0, session.age.as_millis(), session.served.bits()])
    };
    let Secret(first, second) = shared.secret();
    let learned = json!({
        "format": FORMAT,
        "secret": [first, second],
        "pace": [pace.mean().as_nanos(), pace.seen()],
        "at": wall_clock_ms(),
        "classes": names,
        "sessions": sessions.iter().map(session).collect::<Vec<_>>(),
    });
    learned.to_string().into_bytes()
}

impl Learned {
    /// `None`: it is not what [`write`] writes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        if value["format"] != FORMAT {
            return None;
        }
        let number = |value: &Value| value.as_u64();
        let secret = &value["secret"];
        let pace = &value["pace"];
        let mean = Span::from_nanos(number(&pace[0])?);
        let name = |name: &Value| name.as_str().map(str::to_owned);
        let session = |session: &Value| {
            Some(Remembered {
                key: SessionKey(number(&session[0])?),
                age: Span::from_millis(number(&session[1])?),
                served: ClassSet::from_bits(number(&session[2])?),
            })
        };
        Some(Self {
            secret: Secret(number(&secret[0])?, number(&secret[1])?),
            pace: Pace::new(mean, u32::try_from(number(&pace[1])?).ok()?),
            at: number(&value["at"])?,
            classes: value["classes"].as_array()?.iter().map(name).collect::<Option<_>>()?,
            sessions: value["sessions"].as_array()?.iter().map(session).collect::<Option<_>>()?,
        })
    }

    pub(crate) const fn secret(&self) -> Secret {
        self.secret
    }

    /// Tells the engine. Says how many sessions it remembers now.
    pub(crate) fn restore(&self, shared: &Shared, settings: &Settings) -> usize {
        let numbers: Vec<Option<ClassId>> = self
            .classes
            .iter()
            .map(|name| {
                let is = |class: &bywash_config::ClassConfig| class.class.name == *name;
                settings.config.classes.iter().position(is).map(|index| ClassId(index as u8))
            })
            .collect();
        let number = |class: ClassId| numbers.get(class.index()).copied().flatten();
        // A clock that was set back makes nobody younger.
        let since = Span::from_millis(wall_clock_ms().saturating_sub(self.at));
        let remembered = self.sessions.iter().map(|session| Remembered {
            key: session.key,
            age: session.age + since,
            served: session.served.iter().filter_map(number).collect(),
        });
        shared.driver.restore(remembered, self.pace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_state_is_not_read() {
        for bytes in [&b""[..], b"{}", b"[1]", b"\xff", br#"{"format":2}"#, br#"{"format":1}"#] {
            assert!(Learned::read(bytes).is_none(), "{}", String::from_utf8_lossy(bytes));
        }
    }
}
