//! Reads a document of one gateway, or of all gateways of a fleet, and prints it.

use bywash_api::Fleet;
use bywash_command::Failure;
use bywash_command::admin_client;
use bywash_command::streams::{print, print_json, say};
use bywash_command::which::Which;
use bywash_terminal::text::escaped;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::args::Read;

/// Prints the document with this path, as JSON or as `text` describes it. With `--fleet`, prints
/// that of each gateway under its name.
pub(crate) fn read<T: DeserializeOwned>(
    args: &Read,
    path: &str,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    if args.fleet {
        return read_all(args, path, text);
    }
    read_one(&args.which, args.json, path, text)
}

/// Prints the document of one gateway with this path, as JSON or as `text` describes it.
pub(crate) fn read_one<T: DeserializeOwned>(
    which: &Which,
    as_json: bool,
    path: &str,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    if as_json {
        return print_json(&admin_client::get(which, path)?);
    }
    print(&text(&admin_client::get(which, path)?))
}

fn read_all<T: DeserializeOwned>(
    args: &Read,
    path: &str,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let fleet: Fleet = admin_client::get(&args.which, "/v1/fleet")?;
    let mut documents = Map::new();
    let mut unread = 0;
    for gateway in fleet.gateways {
        let path = path.replacen("/v1/", &format!("/v1/fleet/{}/", gateway.name), 1);
        let shown = if args.json {
            admin_client::get(&args.which, &path).map(|found| {
                documents.insert(gateway.name.clone(), found);
            })
        } else {
            admin_client::get(&args.which, &path)
                .and_then(|found| print(&format!("{}:\n{}\n", gateway.name, text(&found))))
        };
        if let Err(why) = shown {
            unread += 1;
            say(format!("bywash: {}: {}", escaped(&gateway.name), why.words()));
        }
    }
    if args.json {
        print_json(&Value::Object(documents))?;
    }
    match unread {
        0 => Ok(()),
        1 => Err(Failure::running("one gateway was not read")),
        unread => Err(Failure::running(format!("{unread} gateways were not read"))),
    }
}
