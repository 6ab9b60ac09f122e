//! Do gateway and origin understand the same, whatever a client sends?
//!
//! Request smuggling needs two readers who see different messages in the same bytes. So a corpus
//! of malformed and borderline messages (`lab/messages`), and mutations of them, go through the
//! gateway to a recorder; what arrives there is read by a reference that forgives nothing, and
//! replayed to real servers, each with an application that reflects what its server understood.
//! Method, target, host, path, body and number of requests must be the same everywhere.
//!
//! | part | what for |
//! |---|---|
//! | `corpus` | the messages and what is expected of a gateway |
//! | `reading`, `rules` | the reference |
//! | `lane`, `front`, `messages` | client, gateway and recorder |
//! | `verdict` | what may be forwarded, and of what |
//! | `origin`, `replay`, `observed`, `reflector`, `parties` | real servers |
//! | `results`, `progress` | what came of it |
//!
//! The idea of a recorder and a replay to many servers is the HTTP Garden's (Kallus et al., 2024);
//! corpus and code are our own.

pub mod answers;
pub mod corpus;
pub mod front;
pub mod lane;
pub mod messages;
pub mod mutation;
pub mod observed;
pub mod origin;
pub mod parties;
pub mod program;
pub mod progress;
pub mod reading;
pub mod reflector;
pub mod replay;
pub mod results;
mod rules;
pub mod verdict;

#[cfg(test)]
mod tests {
    use super::*;
    use corpus::Expect;
    use std::path::Path;

    fn cases() -> Vec<corpus::Case> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../messages");
        corpus::load(Path::new(folder)).unwrap()
    }

    #[test]
    fn the_corpus_is_large_and_every_case_has_its_source() {
        let cases = cases();
        assert!(cases.len() >= 300, "{}", cases.len());
        for case in &cases {
            assert!(case.why.contains("RFC "), "{} names no source", case.name);
        }
    }

    /// What must be forwarded is in order for the reference, so that a fault of the case's author
    /// is not taken for the gateway's.
    #[test]
    fn the_reference_reads_what_must_be_forwarded() {
        let mut wrong = Vec::new();
        for case in cases() {
            let reading = reading::read(&case.bytes, reading::Speaker::Client);
            if let Expect::Exactly { forwarded, .. } = case.expect
                && reading.requests.len() < forwarded
            {
                wrong.push(format!("{}: {:?}", case.name, reading.tail));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
