//! `bywash audit`: the last decisions of operators and of bywash.

use bywash_api::Audit;
use bywash_command::Failure;
use bywash_control::Note;
use bywash_terminal::text::escaped;
use bywash_terminal::{Align, Table};

use crate::args;
use crate::read::read_one;

pub(crate) fn audit(args: &args::Audit) -> Result<(), Failure> {
    let path = format!("/v1/audit?limit={}", args.limit);
    read_one(&args.which, args.json, &path, |audit: &Audit| {
        let lost = "\nThe list is lost when the gateway ends: its file has no `state.directory`.\n";
        format!("{}{}", table(&audit.notes), if audit.kept { "" } else { lost })
    })
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
