//! `bywash status` prints the state of a running gateway; `bywash bypass` switches all decisions
//! off or on.

use bywash_api::{MemoryStatus, ServerStatus, SessionCookieStatus, SetBypass, Status};
use bywash_command::Failure;
use bywash_command::streams::print;
use bywash_command::{admin_client, operators};
use bywash_terminal::text::escaped;
use bywash_terminal::{Align, Table};

use crate::args::{self, Bypass, Switch};

use crate::policy;
use crate::read::read;

pub(crate) fn status(args: &args::Status) -> Result<(), Failure> {
    if args.ready {
        let ready = admin_client::is_ready(&args.read.which.admin)?;
        return if ready {
            print("ready\n")
        } else {
            Err(Failure::running("the gateway does not serve"))
        };
    }
    read(&args.read, "/v1/status", |status: &Status| {
        format!("{}{}\n{}", headline(status), warnings(status), classes(status))
    })
}

/// Runs `bywash bypass on|off`, and prints the policy that is in force afterwards.
pub(crate) fn bypass(args: &Bypass) -> Result<(), Failure> {
    let by = operators::author(args.by.as_deref())?;
    let request = SetBypass {
        on: args.switch == Switch::On,
        by: Some(by.clone()),
        why: args.why.clone(),
        lasts: args.lasts.map(|lasts| lasts.to_string()),
        revision: None,
    };
    let policy = admin_client::post(&args.which, &by, "/v1/bypass", &request)?;
    print(&policy::describe(&policy))
}

fn headline(status: &Status) -> String {
    let order = if status.lifo { "newest first" } else { "oldest first" };
    let state = match (status.draining, status.lifo) {
        (true, _) => "stopping",
        (false, true) => "overload",
        (false, false) => "no overload",
    };
    let unwritten = status.unwritten.as_deref().map_or_else(String::new, |why| {
        let why = escaped(why);
        format!("decisions hold only until the process ends, as they could not be saved: {why}\n")
    });
    let cookie = status.session_cookie.as_ref().map_or_else(String::new, session_cookie);
    format!(
        "bywash {} · {} · {state} · {} ({order}) · upstream {} · configuration {}\n\
         running {} of {} · waiting {} (oldest {} ms) · mean service {:.1} ms · sessions {}{}{}{}\n{cookie}{unwritten}",
        escaped(&status.version),
        escaped(&status.mode),
        escaped(&status.policy.name),
        servers(&status.servers),
        escaped(&status.config_hash),
        status.running,
        status.limit,
        status.waiting,
        status.oldest_wait_ms,
        status.mean_service_ms,
        status.sessions,
        some_of("uploads", status.uploads),
        some_of("departed", status.departed),
        memory(&status.memory),
    )
}

/// Returns a line about the session cookie: a warning, or the cookie that `auto` has picked.
fn session_cookie(cookie: &SessionCookieStatus) -> String {
    let name = cookie.name.as_deref().map(escaped);
    match (&cookie.warning, cookie.source.as_str(), name) {
        (Some(warning), _, _) => format!("warning: {}\n", escaped(warning)),
        (None, "auto", Some(name)) => format!("session cookie `{name}` (auto)\n"),
        (None, "auto", None) => "session cookie not picked yet (auto)\n".to_owned(),
        (None, _, Some(name)) => {
            let (carried, answered) = (cookie.carried, cookie.answered);
            format!(
                "session cookie `{name}`: {carried} of the last {answered} answered requests had \
                 it\n"
            )
        }
        (None, _, None) => String::new(),
    }
}

/// Returns the warnings of the last reload and of the classes, each on its own line.
fn warnings(status: &Status) -> String {
    let reload = status.reload_refused.as_deref().map(|why| {
        format!(
            "warning: the last reload was refused, the file in force is an older one: {}\n",
            escaped(why)
        )
    });
    let classes = status.classes.iter().filter_map(|class| {
        let warning = escaped(class.warning.as_deref()?);
        Some(format!("warning: class {}: {warning}\n", escaped(&class.name)))
    });
    reload.into_iter().chain(classes).collect()
}

/// Returns `count` with its name; an empty text if `count` is 0.
fn some_of(name: &str, count: u64) -> String {
    if count > 0 { format!(" · {name} {count}") } else { String::new() }
}

/// Returns the use of memory as text if the use is so high that the gateway reacts to it; otherwise
/// returns an empty text.
fn memory(memory: &MemoryStatus) -> String {
    if memory.level == "calm" {
        return String::new();
    }
    let (used, budget) = (memory.used >> 20, memory.budget >> 20);
    format!(" · memory {used} of {budget} MiB ({})", escaped(&memory.level))
}

/// Returns the name of the server if there is only one. For several servers, returns how many of
/// them are up.
fn servers(servers: &[ServerStatus]) -> String {
    let out = |server: &&ServerStatus| matches!(server.state.as_str(), "down" | "ejected");
    match (servers, servers.iter().filter(out).count()) {
        ([only], 0) => escaped(&only.server),
        ([only], _) => format!("{} ({})", escaped(&only.server), escaped(&only.state)),
        (several, out) => format!("{} of {} servers", several.len() - out, several.len()),
    }
}

fn classes(status: &Status) -> Table {
    let mut table = Table::new(&[
        ("class", Align::Left),
        ("tier", Align::Left),
        ("mode", Align::Left),
        ("waiting", Align::Right),
        ("transaction", Align::Right),
        ("served", Align::Right),
        ("late", Align::Right),
        ("shed", Align::Right),
        ("throttled", Align::Right),
        ("expired", Align::Right),
        ("terminated", Align::Right),
        ("orphaned", Align::Right),
        ("upstream_error", Align::Right),
    ]);
    for class in &status.classes {
        let (mode, outcomes) = (escaped(&class.mode), class.outcomes);
        table.push(vec![
            escaped(&class.name),
            escaped(&class.tier),
            if class.enforce_percent < 100 {
                format!("{mode} {} %", class.enforce_percent)
            } else {
                mode
            },
            class.waiting.to_string(),
            class.standings.transaction.to_string(),
            outcomes.served.to_string(),
            outcomes.late.to_string(),
            outcomes.shed.to_string(),
            outcomes.throttled.to_string(),
            outcomes.expired.to_string(),
            outcomes.terminated.to_string(),
            outcomes.orphaned.to_string(),
            outcomes.upstream_error.to_string(),
        ]);
    }
    table
}
