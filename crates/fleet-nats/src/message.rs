//! The text of the messages: JSON with the version of the protocol.

use bywash_control::Note;
use bywash_fleet::{Announcement, Grant, Identity, Report};
use serde::{Deserialize, Serialize};

use crate::documents::{Part, Question};

/// The version of the protocol. Gateways with different versions ignore each other's messages.
const VERSION: u32 = 1;

/// The maximum number of bytes of a message with its signature. The longest is a decision, with the
/// name and the reason of its author and the pattern of its requests.
pub(crate) const MOST: usize = 16 * 1024;

/// A message between gateways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Message {
    Announcement(Announcement),
    Report(Report),
    Grant(Grant),
    /// The allocator ignores the reports of this run, because another run of a program with the
    /// same name has pledged its share.
    Refusal(Identity),
    Presence(Presence),
    /// A decision of an operator that holds at all gateways.
    Decision(Box<Note>),
    /// Another gateway, or an operator there, reads a document.
    Question(Question),
    /// A part of the document.
    Part(Part),
}

/// The state of a gateway, for operators and for the exchange of their decisions. The division of
/// the slots does not depend on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Presence {
    pub(crate) from: Identity,
    /// The version of the program.
    pub(crate) version: String,
    /// The configured limit of all gateways together, in slots.
    pub(crate) limit: u32,
    /// The slots that the gateway has.
    pub(crate) slots: u32,
    /// The number of requests that hold a slot.
    pub(crate) running: u32,
    /// The number of requests that wait.
    pub(crate) waiting: u32,
    /// The demand of all ranks, in thousandths of a slot.
    pub(crate) demand: u64,
    /// The wall clock, in milliseconds since 1970.
    pub(crate) clock: u64,
    /// The digest of the settings that must be the same at all gateways.
    pub(crate) settings: u64,
    /// The digest of the decisions that the gateway knows.
    pub(crate) decisions: u64,
}

#[derive(Serialize)]
struct Sent<'m> {
    version: u32,
    message: &'m Message,
}

#[derive(Deserialize)]
struct Received {
    message: Message,
}

#[derive(Deserialize)]
struct AnyVersion {
    version: u32,
}

/// The reason why a message was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rejected {
    TooLong,
    /// The signature was not made with the fleet's key for this subject.
    Unsigned,
    OtherVersion,
    Malformed,
    /// The sender is not in the list of the fleet's gateways.
    Stranger,
    /// An older report, or one that confirms a grant that was not made.
    OutOfOrder,
    /// Another run of a program with this name has pledged its share.
    TwoRuns,
}

impl Rejected {
    /// Returns the name for the status and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Unsigned => "unsigned",
            Self::OtherVersion => "other_version",
            Self::Malformed => "malformed",
            Self::Stranger => "stranger",
            Self::OutOfOrder => "out_of_order",
            Self::TwoRuns => "two_runs",
        }
    }

    /// Returns the number of such messages at which the log names the reason.
    pub(crate) const fn logged_at(self) -> u64 {
        match self {
            // A gateway that has just started again is taken for a second program for two seconds.
            Self::TwoRuns => 25,
            Self::TooLong
            | Self::Unsigned
            | Self::OtherVersion
            | Self::Malformed
            | Self::Stranger
            | Self::OutOfOrder => 1,
        }
    }

    /// Returns what the log says about such messages.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::TooLong => "a message is too long",
            Self::Unsigned => "a message is not signed with the key of fleet.key_file",
            Self::OtherVersion => "a gateway speaks another version of the protocol",
            Self::Malformed => "a message cannot be read",
            Self::Stranger => "a gateway is not in fleet.gateways",
            Self::OutOfOrder => "a report came late or twice",
            Self::TwoRuns => "two programs have the same fleet.name",
        }
    }
}

/// Returns the text of a message.
pub(crate) fn write(message: &Message) -> Vec<u8> {
    serde_json::to_vec(&Sent { version: VERSION, message }).expect("it has only texts and numbers")
}

/// Reads the text of a message, whose signature is right.
pub(crate) fn read(text: &[u8]) -> Result<Message, Rejected> {
    let found: AnyVersion = serde_json::from_slice(text).map_err(|_| Rejected::Malformed)?;
    if found.version != VERSION {
        return Err(Rejected::OtherVersion);
    }
    let received: Received = serde_json::from_slice(text).map_err(|_| Rejected::Malformed)?;
    Ok(received.message)
}

#[cfg(test)]
mod tests {
    use bywash_control::{FleetStamp, Subject, Timestamp, What};
    use bywash_fleet::{Demand, MemberId, RANKS, Rank};
    use bywash_units::TimeSpan;

    use super::*;

    const ONE: Identity = Identity { member: MemberId(u64::MAX), run: u64::MAX };

    /// Returns a decision with texts of the longest form in JSON.
    fn longest_decision() -> Note {
        let quotes = "\"".repeat(200);
        Note {
            at: Timestamp::MAX,
            subject: Subject::Elephant { number: u32::MAX, pattern: "\"".repeat(1_000) },
            what: What::Approved,
            by: quotes.clone(),
            why: quotes.clone(),
            limits: None,
            until: Some(Timestamp::MAX),
            unwritten: None,
            fleet: Some(FleetStamp { revision: u64::MAX, gateway: quotes }),
        }
    }

    fn messages() -> Vec<Message> {
        let mut demand = Demand::default();
        for rank in 0..RANKS as u8 {
            demand = demand.with(Rank::new(rank), u32::MAX);
        }
        let (number, accepted) = (u64::MAX, u64::MAX);
        let (share, held) = (u32::MAX, u32::MAX);
        vec![
            Message::Announcement(Announcement { from: ONE }),
            Message::Report(Report {
                from: ONE,
                to: ONE,
                number,
                accepted,
                pledges: false,
                share,
                held,
                demand,
            }),
            Message::Grant(Grant {
                from: ONE,
                to: ONE,
                number,
                answers: 7,
                slots: 3,
                term: TimeSpan::from_millis(1_875),
            }),
            Message::Refusal(ONE),
            Message::Presence(Presence {
                from: ONE,
                version: "x".repeat(40),
                limit: u32::MAX,
                slots: u32::MAX,
                running: u32::MAX,
                waiting: u32::MAX,
                demand: u64::MAX,
                clock: u64::MAX,
                settings: u64::MAX,
                decisions: u64::MAX,
            }),
            Message::Decision(Box::new(longest_decision())),
        ]
    }

    #[test]
    fn each_message_is_read_as_it_was_written_and_is_short() {
        for message in messages() {
            let text = write(&message);
            assert_eq!(read(&text), Ok(message));
            assert!(text.len() < MOST / 2, "{} bytes", text.len());
        }
    }

    #[test]
    fn another_version_is_said_even_if_its_messages_are_unknown() {
        let text = br#"{"version":2,"message":{"future":{}},"more":1}"#;
        assert_eq!(read(text), Err(Rejected::OtherVersion));
    }

    #[test]
    fn texts_that_are_no_messages_are_malformed() {
        let texts = [
            "",
            "{}",
            "[]",
            "\u{0}",
            r#"{"version":1}"#,
            r#"{"version":1,"message":{"future":{}}}"#,
            r#"{"version":1,"message":{"grant":{"slots":-1}}}"#,
        ];
        for text in texts {
            assert_eq!(read(text.as_bytes()), Err(Rejected::Malformed), "{text}");
        }
    }

    #[test]
    fn a_demand_beyond_the_most_is_cut() {
        let claimed = "4294967295,".repeat(RANKS - 1) + "4294967295";
        let demand: Demand = serde_json::from_str(&format!("[{claimed}]")).unwrap();
        assert_eq!(demand.thousandths(), &[Demand::MOST; RANKS]);
    }
}
