//! `bywash status` prints the state of a running gateway; `bywash bypass` switches all decisions
//! off or on.

use bywash_api::SetBypass;
use bywash_command::Failure;
use bywash_command::streams::{print, print_json};
use bywash_command::{admin_client, operators};
use bywash_terminal::text::escaped;
use bywash_terminal::{Align, Table};
use serde_json::Value;

use crate::args::{Bypass, Status, Switch};

use crate::policy;

pub(crate) fn status(args: &Status) -> Result<(), Failure> {
    if args.ready {
        let ready = admin_client::is_ready(&args.which.admin)?;
        return if ready {
            print("ready\n")
        } else {
            Err(Failure::running("the gateway does not serve"))
        };
    }
    let status = admin_client::get(&args.which, "/v1/status")?;
    if args.json {
        return print_json(&status);
    }
    print(&format!("{}{}\n{}", headline(&status), warnings(&status), classes(&status)))
}

/// `bywash bypass on|off`: prints the policy that is in force afterwards.
pub(crate) fn bypass(args: &Bypass) -> Result<(), Failure> {
    let by = operators::author(args.by.as_deref())?;
    let said = SetBypass {
        on: args.switch == Switch::On,
        by: Some(by.clone()),
        why: args.why.clone(),
        lasts: args.lasts.map(|lasts| lasts.to_string()),
        revision: None,
    };
    let policy = admin_client::post(&args.which, &by, "/v1/bypass", &said)?;
    print(&policy::told(&policy))
}

fn headline(status: &Value) -> String {
    let order = if status["newest_first"] == true { "newest first" } else { "oldest first" };
    let state = match (&status["draining"], &status["newest_first"]) {
        (Value::Bool(true), _) => "stopping",
        (_, Value::Bool(true)) => "overload",
        _ => "no overload",
    };
    let unwritten = status["unwritten"].as_str().map_or_else(String::new, |why| {
        let why = escaped(why);
        format!("decisions hold only until the process ends, as they could not be saved: {why}\n")
    });
    let cookie = session_cookie(&status["session_cookie"]);
    format!(
        "bywash {} · {} · {state} · {} ({order}) · upstream {} · configuration {}\n\
         running {} of {} · waiting {} (oldest {} ms) · mean service {:.1} ms · sessions {}{}{}{}\n{cookie}{unwritten}",
        word(&status["version"]),
        word(&status["mode"]),
        word(&status["policy"]["name"]),
        servers(status),
        word(&status["config_hash"]),
        status["running"],
        status["limit"],
        status["waiting"],
        status["oldest_wait_ms"],
        status["mean_service_ms"].as_f64().unwrap_or(0.0),
        status["sessions"],
        some_of("uploads", &status["uploads"]),
        some_of("departed", &status["departed"]),
        memory(&status["memory"]),
    )
}

/// Returns a line on the session cookie: a warning, or the cookie that `auto` has picked.
fn session_cookie(cookie: &Value) -> String {
    match (cookie["warning"].as_str(), cookie["source"].as_str(), cookie["name"].as_str()) {
        (Some(warning), _, _) => format!("warning: {}\n", escaped(warning)),
        (None, Some("auto"), Some(name)) => format!("session cookie `{}` (auto)\n", escaped(name)),
        (None, Some("auto"), None) => "session cookie not picked yet (auto)\n".to_owned(),
        (None, _, Some(name)) => {
            let (carried, answered) = (&cookie["carried"], &cookie["answered"]);
            let name = escaped(name);
            format!(
                "session cookie `{name}`: {carried} of the last {answered} answered requests had \
                 it\n"
            )
        }
        (None, _, None) => String::new(),
    }
}

/// Returns the warnings of the last reload and of the classes, each on a line of its own.
fn warnings(status: &Value) -> String {
    let reload = status["reload_refused"].as_str().map(|why| {
        format!(
            "warning: the last reload was refused, the file in force is an older one: {}\n",
            escaped(why)
        )
    });
    let classes = status["classes"].as_array().into_iter().flatten();
    let classes = classes.filter_map(|class| {
        let warning = escaped(class["warning"].as_str()?);
        Some(format!("warning: class {}: {warning}\n", word(&class["name"])))
    });
    reload.into_iter().chain(classes).collect()
}

/// Returns a count with its name, if it is not 0.
fn some_of(name: &str, count: &Value) -> String {
    let some = count.as_u64().filter(|count| *count > 0);
    some.map_or_else(String::new, |count| format!(" · {name} {count}"))
}

/// Returns the use of memory, if it is high enough for the gateway to react.
fn memory(memory: &Value) -> String {
    let level = memory["level"].as_str().filter(|level| *level != "calm");
    let mebibytes = |name: &str| memory[name].as_u64().unwrap_or(0) >> 20;
    level.map_or_else(String::new, |level| {
        let (used, budget) = (mebibytes("used"), mebibytes("budget"));
        format!(" · memory {used} of {budget} MiB ({})", escaped(level))
    })
}

/// Returns the name of a single server; of several, how many are up.
fn servers(status: &Value) -> String {
    let servers = status["servers"].as_array().map_or(&[][..], Vec::as_slice);
    let out = |server: &&Value| matches!(server["state"].as_str(), Some("down" | "ejected"));
    match (servers, servers.iter().filter(out).count()) {
        ([only], 0) => word(&only["server"]),
        ([only], _) => format!("{} ({})", word(&only["server"]), word(&only["state"])),
        (several, out) => format!("{} of {} servers", several.len() - out, several.len()),
    }
}

fn word(value: &Value) -> String {
    escaped(value.as_str().unwrap_or("?"))
}

const OUTCOMES: [&str; 8] =
    ["served", "late", "shed", "throttled", "expired", "terminated", "orphaned", "upstream_error"];

fn classes(status: &Value) -> Table {
    let mut header = vec![
        ("class", Align::Left),
        ("tier", Align::Left),
        ("mode", Align::Left),
        ("waiting", Align::Right),
        ("transaction", Align::Right),
    ];
    header.extend(OUTCOMES.map(|outcome| (outcome, Align::Right)));
    let mut table = Table::new(&header);
    for class in status["classes"].as_array().into_iter().flatten() {
        let mut row: Vec<String> = ["name", "tier", "mode"].map(|key| word(&class[key])).into();
        if let Some(percent) = class["percent"].as_u64().filter(|percent| *percent < 100) {
            row[2] = format!("{} {percent} %", row[2]);
        }
        row.push(class["waiting"].to_string());
        row.push(class["standings"]["transaction"].to_string());
        row.extend(OUTCOMES.map(|outcome| class["outcomes"][outcome].to_string()));
        table.push(row);
    }
    table
}
