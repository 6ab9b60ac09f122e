//! The known state of a gateway, and the user's settings of what is shown. The model is independent
//! of the terminal and of the clock.

use bywash_api::{ClassPolicy, Elephants, Policy, Request, Status};
use bywash_control::Note;
use bywash_history::WindowSums;

use super::feed::Answers;
use super::grid::{Grid, Sort};
use super::lists::{self, Class};
use super::rows::Rows;
use super::sums::Sums;
use super::tables::View;
use crate::args::Window;

/// The number of rows that a page key moves by.
const PAGE: usize = 10;
const MINUTE: f64 = 60.0;

/// A move of the selection to another row or column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Next,
    Previous,
    PageDown,
    PageUp,
}

/// The user's settings of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct TableSettings {
    pub(super) sort: Option<Sort>,
    pub(super) filter: String,
    /// The ID of the selected row; `None` selects the first.
    chosen: Option<String>,
}

/// A period in which the gateway does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Silence {
    /// The beginning of the period, in milliseconds since 1970 by the local clock.
    pub(super) since: u64,
    pub(super) why: String,
}

/// The model of the gateway. See the documentation of the module.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) status: Status,
    pub(super) window: Window,
    /// The sums over the selected window.
    pub(super) sums: WindowSums,
    rows: Rows,
    pub(super) elephants: Elephants,
    pub(super) policy: Option<Policy>,
    pub(super) requests: Vec<Request>,
    pub(super) notes: Vec<Note>,
    pub(super) view: View,
    pub(super) silence: Option<Silence>,
    table_settings: [TableSettings; 4],
}

/// The state of all classes together.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) sums: Sums,
    /// The number of transactions per minute that were answered in time: requests of classes of
    /// tier `transaction`. If no class has that tier, requests of all classes are counted.
    pub(super) transactions_per_min: f64,
    pub(super) has_transactions: bool,
    /// The state of the gateway in one word.
    pub(super) state: &'static str,
}

impl Model {
    pub(super) fn new(answers: Answers) -> Self {
        let mut model = Self {
            status: answers.status.clone(),
            window: answers.window,
            sums: WindowSums::default(),
            rows: Rows::default(),
            elephants: Elephants::default(),
            policy: None,
            requests: Vec::new(),
            notes: Vec::new(),
            view: View::Classes,
            silence: None,
            table_settings: Default::default(),
        };
        model.take(answers);
        model
    }

    /// Applies new answers of the gateway.
    pub(super) fn take(&mut self, answers: Answers) {
        let Answers { status, window, sums, rows, anew, elephants, policy, requests, notes } =
            answers;
        if anew {
            self.rows = Rows::default();
        }
        self.status = status;
        (self.window, self.sums) = (window, sums);
        self.rows.append(&rows);
        self.elephants = elephants.unwrap_or_else(|| std::mem::take(&mut self.elephants));
        self.policy = policy.or_else(|| self.policy.take());
        self.requests = requests.unwrap_or_else(|| std::mem::take(&mut self.requests));
        self.notes = notes.unwrap_or_else(|| std::mem::take(&mut self.notes));
        self.silence = None;
    }

    /// Records that the gateway did not answer at the time `now`, for the reason `why`.
    pub(super) fn record_silence(&mut self, now: u64, why: String) {
        let since = self.silence.as_ref().map_or(now, |silence| silence.since);
        self.silence = Some(Silence { since, why });
    }

    pub(super) fn whole(&self) -> Whole {
        let sums = Sums::of_all(&self.sums);
        let transactions = self.status.classes.iter().filter(|class| class.tier == "transaction");
        let transactions: Vec<Sums> =
            transactions.map(|class| Sums::of_class(&self.sums, &class.name)).collect();
        let served = if transactions.is_empty() {
            sums.outcomes.served
        } else {
            transactions.iter().map(|sums| sums.outcomes.served).sum()
        };
        Whole {
            sums,
            transactions_per_min: sums.per_second(served) * MINUTE,
            has_transactions: !transactions.is_empty(),
            state: self.rows.load_state().map_or("UNKNOWN", |state| state.name()),
        }
    }

    /// Returns the classes with their sums, in the order of the configuration file.
    pub(super) fn classes(&self) -> Vec<Class<'_>> {
        let class = |of| Class {
            of,
            sums: Sums::of_class(&self.sums, &of.name),
            overridden: self.policy_of(&of.name).is_some_and(|class| class.overridden.is_some()),
        };
        self.status.classes.iter().map(class).collect()
    }

    pub(super) fn policy_of(&self, class: &str) -> Option<&ClassPolicy> {
        self.policy.as_ref()?.classes.iter().find(|one| one.name == class)
    }

    /// Returns the present table, sorted and filtered.
    pub(super) fn grid(&self) -> Grid {
        let settings = self.table_settings();
        self.all(self.view).arranged(settings.sort, &settings.filter)
    }

    /// Returns all rows of a table in their original order.
    pub(super) fn all(&self, view: View) -> Grid {
        match view {
            View::Classes => lists::classes(&self.classes(), self.status.waiting),
            View::Elephants => lists::elephants(&self.elephants.elephants),
            View::Requests => lists::requests(&self.requests),
            View::Decisions => lists::decisions(&self.notes),
        }
    }

    pub(super) const fn table_settings(&self) -> &TableSettings {
        &self.table_settings[self.view as usize]
    }

    pub(super) const fn table_settings_mut(&mut self) -> &mut TableSettings {
        &mut self.table_settings[self.view as usize]
    }

    /// Returns the index of the selected row in `grid`, or 0 if `grid` does not have the row.
    pub(super) fn chosen(&self, grid: &Grid) -> usize {
        let chosen = self.table_settings().chosen.as_ref();
        let at = chosen.and_then(|id| grid.rows.iter().position(|row| row.id == *id));
        at.unwrap_or(0)
    }

    pub(super) fn chosen_id(&self) -> Option<String> {
        let grid = self.grid();
        grid.rows.get(self.chosen(&grid)).map(|row| row.id.clone())
    }

    pub(super) fn choose(&mut self, step: Step) {
        let grid = self.grid();
        let at = self.chosen(&grid);
        let to = match step {
            Step::Next => at + 1,
            Step::Previous => at.saturating_sub(1),
            Step::PageDown => at + PAGE,
            Step::PageUp => at.saturating_sub(PAGE),
        };
        let to = to.min(grid.rows.len().saturating_sub(1));
        self.table_settings_mut().chosen = grid.rows.get(to).map(|row| row.id.clone());
    }

    /// Selects the next or the previous column to sort by. The original order follows the last
    /// column.
    pub(super) fn sort(&mut self, step: Step) {
        let columns = self.all(self.view).columns;
        let places = columns.len() + 1;
        let at = self.table_settings().sort.map_or(0, |sort| sort.column + 1);
        let to = match step {
            Step::Next | Step::PageDown => (at + 1) % places,
            Step::Previous | Step::PageUp => (at + places - 1) % places,
        };
        // Columns of numbers are sorted in descending order, columns of text in ascending order.
        let falls = |column: usize| columns[column].align == bywash_terminal::Align::Right;
        let sort = to.checked_sub(1).map(|column| Sort { column, falls: falls(column) });
        self.table_settings_mut().sort = sort;
    }

    pub(super) const fn reverse(&mut self) {
        if let Some(sort) = &mut self.table_settings_mut().sort {
            sort.falls = !sort.falls;
        }
    }

    pub(super) fn clear(&mut self) {
        let settings = self.table_settings_mut();
        (settings.filter, settings.sort) = (String::new(), None);
    }
}

#[cfg(test)]
mod tests {
    use bywash_terminal::text::is_unsafe;
    use serde_json::json;

    use super::*;
    use crate::rows::tests::seconds;
    use crate::sample::{answers, elephant, minute, model, request};

    fn ids(model: &Model) -> Vec<String> {
        model.grid().rows.into_iter().map(|row| row.id).collect()
    }

    #[test]
    fn what_is_not_new_stays_and_a_gateway_that_is_another_begins_anew() {
        let mut model = model();
        let quiet = Answers {
            anew: false,
            rows: seconds(61, 10, 0),
            elephants: None,
            policy: None,
            requests: None,
            ..answers()
        };
        model.take(quiet);
        assert_eq!((model.elephants.elephants.len(), model.requests.len()), (1, 2));
        assert!(model.policy.is_some());
        assert_eq!(model.whole().state, "CALM", "the refusals are older than ten seconds");
        model.take(Answers { rows: seconds(1, 2, 1), sums: minute("search", 2, 0), ..answers() });
        assert_eq!((model.whole().state, model.whole().sums.ended()), ("REFUSING", 2));
    }

    #[test]
    fn orders_are_transactions_that_were_served() {
        let mut model = model();
        assert_eq!(
            (model.whole().transactions_per_min, model.whole().has_transactions),
            (0.0, true)
        );
        let sums = minute("confirm", 120, 0);
        model.take(Answers { rows: seconds(1, 60, 0), sums, ..answers() });
        assert!((model.whole().transactions_per_min - 120.0).abs() < 1e-9);
        assert_eq!(model.whole().state, "CALM");
    }

    #[test]
    fn columns_are_sorted_by_one_after_the_other_and_turned_round() {
        let mut model = model();
        assert_eq!(ids(&model), ["confirm", "search"]);
        for _ in 0..3 {
            model.sort(Step::Next);
        }
        assert_eq!(
            model.table_settings().sort,
            Some(Sort { column: 2, falls: true }),
            "IN/S, the most first"
        );
        assert_eq!(ids(&model), ["search", "confirm"]);
        model.reverse();
        assert_eq!(ids(&model), ["confirm", "search"]);
        (0..3).for_each(|_| model.sort(Step::Previous));
        assert_eq!(model.table_settings().sort, None);
        model.sort(Step::Previous);
        assert_eq!(model.table_settings().sort.unwrap().column, 13);
        model.sort(Step::Next);
        assert_eq!(model.table_settings().sort, None);
    }

    #[test]
    fn a_row_that_was_chosen_stays_so_wherever_it_goes() {
        let mut model = model();
        assert_eq!(model.chosen_id().as_deref(), Some("confirm"));
        model.choose(Step::Next);
        model.choose(Step::PageDown);
        assert_eq!(model.chosen_id().as_deref(), Some("search"));
        (0..3).for_each(|_| model.sort(Step::Next));
        assert_eq!(
            (model.chosen(&model.grid()), model.chosen_id().as_deref()),
            (0, Some("search"))
        );
        model.table_settings_mut().filter = "FIRM".into();
        assert_eq!(model.chosen_id().as_deref(), Some("confirm"), "the first that there is");
        model.table_settings_mut().filter = "nothing".into();
        model.choose(Step::Next);
        assert_eq!(model.chosen_id(), None);
        model.clear();
        assert_eq!(ids(&model), ["confirm", "search"]);
        model.view = View::Requests;
        assert_eq!(
            model.chosen_id().as_deref(),
            Some("00000000000000aa"),
            "each table has its own"
        );
    }

    #[test]
    fn silence_lasts_since_it_began_until_somebody_answers() {
        let mut model = model();
        model.record_silence(1000, "gone".into());
        model.record_silence(2000, "still".into());
        assert_eq!(model.silence, Some(Silence { since: 1000, why: "still".into() }));
        model.take(answers());
        assert_eq!(model.silence, None);
    }

    #[test]
    fn no_text_of_anybody_else_steers_the_terminal() {
        let hostile = "/\x1b[2J\u{202e}x\r\n";
        let mut answers = answers();
        answers.status.classes[0].name = hostile.into();
        answers.status.classes[0].tier = hostile.into();
        answers.status.classes[0].mode = hostile.into();
        answers.elephants =
            Some(Elephants { elephants: vec![elephant(hostile)], ..Elephants::default() });
        let mut malformed = request("x", hostile);
        (malformed.life, malformed.fault, malformed.client) =
            (None, Some(hostile.into()), hostile.into());
        let mut one = request(hostile, hostile);
        let life = one.life.as_mut().unwrap();
        (life.method, life.class, life.outcome) = (hostile.into(), hostile.into(), hostile.into());
        (life.reason, life.decision) = (Some(hostile.into()), Some(hostile.into()));
        answers.requests = Some(vec![one, malformed]);
        let note = json!({
            "at": "2026-01-02T03:04:05Z", "of": "elephant", "number": 1, "pattern": hostile, "what": "approved",
            "by": hostile, "why": hostile
        });
        answers.notes = Some(vec![serde_json::from_value(note).unwrap()]);
        let model = Model::new(answers);
        for view in View::ALL {
            let grid = model.all(view);
            assert!(!grid.rows.is_empty());
            for cell in grid.rows.iter().flat_map(|row| &row.cells) {
                let all = format!("{}{}", cell.text, cell.short.as_deref().unwrap_or_default());
                assert!(!all.contains(is_unsafe), "{all:?}");
            }
        }
    }
}
