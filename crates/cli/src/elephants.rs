//! `bywash elephants`: shows which requests cause the load, and sends an operator's decisions about
//! them.

use bywash_api::Decision;
use bywash_command::Failure;
use bywash_command::elephant_text::{details, listing};
use bywash_command::streams::{print, print_json};
use bywash_command::{admin_client, operators};
use bywash_control::Change;
use bywash_units::TimeSpan;

use crate::args::elephants::{Ask, Author, DecisionMeta, Elephants, Show};
use crate::read::read;

pub(crate) fn elephants(what: &Elephants) -> Result<(), Failure> {
    match what {
        Elephants::List(args) => read(args, "/v1/elephants", listing),
        Elephants::Show(args) => show(args),
        Elephants::Ask(args) => ask(args),
        Elephants::Approve(args) => {
            decide("approve", &args.meta, args.lasts, args.otherwise.change())
        }
        Elephants::Try(args) => {
            decide("try", &args.meta, Some(args.lasts), args.otherwise.change())
        }
        Elephants::Reject(args) => {
            decide("reject", &args.meta, Some(args.lasts), Change::default())
        }
        Elephants::Undo(args) => decide("undo", &args.meta, Some(args.lasts), Change::default()),
    }
}

fn decide(
    what: &str,
    meta: &DecisionMeta,
    lasts: Option<TimeSpan>,
    change: Change,
) -> Result<(), Failure> {
    let DecisionMeta { number, author: Author { by, why }, which } = meta;
    let by = &operators::author(by.as_deref())?;
    let decision = Decision {
        by: Some(by.clone()),
        why: why.clone(),
        lasts: lasts.map(|lasts| lasts.to_string()),
        change,
        revision: None,
    };
    print(&details(&admin_client::post(
        which,
        by,
        &format!("/v1/elephants/{number}/{what}"),
        &decision,
    )?))
}

fn ask(args: &Ask) -> Result<(), Failure> {
    let Author { by, why } = &args.author;
    let by = &operators::author(by.as_deref())?;
    let pattern = args.pattern.clone();
    let asked = bywash_api::Ask { by: Some(by.clone()), why: why.clone(), pattern };
    print(&details(&admin_client::post(&args.which, by, "/v1/routes/ask", &asked)?))
}

fn show(args: &Show) -> Result<(), Failure> {
    let path = format!("/v1/elephants/{}", args.number);
    if args.json {
        return print_json(&admin_client::get(&args.which, &path)?);
    }
    print(&details(&admin_client::get(&args.which, &path)?))
}
