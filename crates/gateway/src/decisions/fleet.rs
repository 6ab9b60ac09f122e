//! Puts decisions in force that operators have made at other gateways of the fleet.

use bywash_control::{Note, Subject, What};
use bywash_terminal::stderr::say;
use bywash_terminal::text::excerpt;

use super::{elephants, overrides};
use crate::process::wall_clock;
use crate::shared::Shared;
use crate::state::stored::DecisionError;

/// Puts a decision of another gateway in force, unless a newer one about its subject is known. A
/// decision that is not possible here is logged, and tried again after each reload. While another
/// process takes over, nothing changes: that process learns the decision from the other gateways.
pub(crate) fn follow(shared: &Shared, decision: Note) {
    // Whether another gateway could save it is of no interest here.
    let decision = &Note { unwritten: None, ..decision.begun_by(wall_clock::now()) };
    let followed = match &decision.subject {
        Subject::Class { .. } | Subject::Bypass => {
            overrides::follow(shared, decision).map_err(|why| refusal(&why))
        }
        Subject::Elephant { .. } => {
            elephants::follow(shared, decision).map_err(|why| refusal(&why))
        }
        Subject::Population { .. } | Subject::File => Ok(()),
    };
    if let Err(Some(why)) = followed {
        let of = decision.fleet.as_ref().map_or("", |stamp| &stamp.gateway);
        say(format_args!(
            "fleet: a decision of {} at the gateway {} is not in force here: {why}",
            excerpt(&decision.by, 200),
            excerpt(of, 64)
        ));
        if decision.what == What::Undone {
            // At a later start, the decision that it undoes must not hold again.
            shared.audit.note(&shared.state_writer, vec![decision.clone()], None);
        } else {
            shared.audit.notes().fleet.learn(wall_clock::now(), decision);
        }
    }
}

/// Returns why a decision is not possible; `None` if it may be possible later.
fn refusal<R: std::error::Error>(why: &DecisionError<R>) -> Option<String> {
    match why {
        DecisionError::Refused(why) => Some(why.to_string()),
        DecisionError::HandedOver => None,
    }
}
