//! `bywash audit`: the last decisions of operators and of bywash.

use bywash_api::Audit;
use bywash_command::Failure;
use bywash_command::admin_client;
use bywash_command::streams::{print, print_json, say};
use bywash_control::Note;
use bywash_terminal::text::escaped;
use bywash_terminal::{Align, Table};

use crate::args;

pub(crate) fn audit(args: &args::Audit) -> Result<(), Failure> {
    let path = format!("/v1/audit?limit={}", args.limit);
    if args.json {
        return print_json(&admin_client::get(&args.which, &path)?);
    }
    let audit: Audit = admin_client::get(&args.which, &path)?;
    print(&table(&audit.notes).to_string())?;
    if !audit.kept {
        say("bywash: the list is lost when the gateway ends: its file has no `state.directory`");
    }
    Ok(())
}

fn table(notes: &[Note]) -> Table {
    let titles = ["time (UTC)", "event", "subject", "author", "reason", "until"];
    let mut table = Table::new(&titles.map(|title| (title, Align::Left)));
    let moment = |at: &bywash_control::Timestamp| at.strftime("%Y-%m-%d %H:%M:%S").to_string();
    for note in notes {
        table.push(vec![
            moment(&note.at),
            note.what.name().to_owned(),
            note.subject.shown(),
            note.author(),
            escaped(&note.why),
            note.until.as_ref().map_or("–".to_owned(), moment),
        ]);
    }
    table
}
