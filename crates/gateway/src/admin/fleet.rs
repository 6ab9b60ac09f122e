//! Answers `/v1/fleet`: the gateways that share the slots of one application, and the documents of
//! each.

use super::answer::{Answered, Refused};
use crate::shared::Shared;

/// Returns the state of the fleet. Returns an error if the gateway belongs to none.
pub(super) fn fleet(shared: &Shared) -> Answered {
    #[cfg(feature = "fleet")]
    if shared.settings().config.fleet.is_some() {
        return Ok(super::answer::document(&shared.fleet.status()));
    }
    let _ = shared;
    Err(none())
}

/// Returns a document of the gateway with this name. `endpoint` is the path of the request, as the
/// table of endpoints has it. Returns an error if the fleet has no such gateway, or if it does not
/// answer.
pub(super) async fn of_gateway(shared: &Shared, endpoint: &str, name: &str) -> Answered {
    #[cfg(feature = "fleet")]
    if let Some(fleet) = &shared.settings().config.fleet {
        use bywash_api::Code;
        use bywash_fleet_nats::Unread;

        let path = endpoint.replacen("/fleet/{name}", "", 1);
        let read = if name == fleet.name {
            text(shared, &path).ok_or(Unread::TooLong)
        } else {
            shared.fleet.read(name, &path).await
        };
        return match read {
            Ok(text) => Ok(super::answer::json(text)),
            Err(why @ Unread::Unknown) => Err(Refused::not_found(why)),
            Err(why @ (Unread::Busy | Unread::Silent | Unread::TooLong)) => {
                Err(Refused::new(Code::Unavailable, why))
            }
        };
    }
    let _ = (shared, endpoint, name);
    Err(none())
}

fn none() -> Refused {
    Refused::not_found("the gateway belongs to no fleet: its file has no `fleet.name`")
}

/// Returns the document of this gateway with this path, for an operator at any gateway of the fleet;
/// `None` if there is no such document.
#[cfg(feature = "fleet")]
pub(crate) fn text(shared: &Shared, path: &str) -> Option<String> {
    use super::{answer, elephants, policy, populations, sessions, status};

    Some(match path {
        "/v1/status" => answer::written(&status::status(shared)),
        "/v1/sessions" => answer::written(&sessions::sessions(shared)),
        "/v1/populations" => answer::written(&populations::populations(shared)),
        "/v1/elephants" => answer::written(&elephants::list(shared)),
        "/v1/policy" => answer::written(&policy::policy(shared)),
        // The rows of all classes may be too long for a document of a fleet.
        "/v1/history" => {
            let summary = shared.history_recorder.history().summary();
            answer::written(&summary)
        }
        _ => return None,
    })
}
