//! Tests that gateway and origin understand messages in the same way, whatever a client sends.
//!
//! Request smuggling needs two programs that read different messages from the same bytes. Therefore
//! a corpus of malformed and borderline messages (`lab/messages`) and their mutations go through
//! the gateway to a recorder. A strict reference reader parses the bytes that arrive at the
//! recorder. The same bytes are replayed to real servers. Each server has an application that
//! reflects how the server understood the request. Method, target, host, path, body and number of
//! requests must be the same for the reference and for every server.
//!
//! | part | purpose |
//! |---|---|
//! | `corpus` | the messages and what is expected of a gateway |
//! | `reading`, `rules` | the reference |
//! | `lane`, `front`, `messages` | client, gateway and recorder |
//! | `verdict` | rules for forwarded messages |
//! | `origin`, `replay`, `observed`, `reflector`, `parties` | real servers |
//! | `results`, `progress` | findings and counts |
//!
//! The idea of a recorder and a replay to many servers comes from the HTTP Garden (Kallus et al.,
//! 2024). Corpus and code are bywash's own.

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

    /// Checks that the reference accepts every message that a gateway must forward. Otherwise an
    /// error in a case would look like an error of the gateway.
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
