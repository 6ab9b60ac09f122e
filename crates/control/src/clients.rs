//! How much of a kind's requests is one client's.
//!
//! Misra and Gries (1982): eight counters for each kind. A client who is not counted takes from all of them; so whoever
//! has more than a ninth of the work is among those that are left, and is counted too low by a ninth at most.

use bywash_discover::{Column, MOST_COLUMNS};

/// Counters of a kind.
const COUNTED: usize = 8;

#[derive(Clone, Debug, Default)]
struct Kind {
    counted: [(u64, f64); COUNTED],
    /// All work.
    work: f64,
    /// Of transactions.
    transactions: f64,
}

/// By kind, whose work it is.
#[derive(Clone, Debug)]
pub(crate) struct Clients(Vec<Kind>);

impl Default for Clients {
    fn default() -> Self {
        Self(vec![Kind::default(); MOST_COLUMNS])
    }
}

impl Clients {
    /// So much work was done for this client, called by a number that nobody can choose.
    pub(crate) fn worked(&mut self, column: Column, client: u64, seconds: f64, transacts: bool) {
        let Some(kind) = column.number().and_then(|number| self.0.get_mut(number)) else { return };
        kind.work += seconds;
        kind.transactions += if transacts { seconds } else { 0.0 };
        if let Some((_, work)) = kind.counted.iter_mut().find(|(who, w)| *who == client && *w > 0.0)
        {
            *work += seconds;
            return;
        }
        let (_, least) = kind.least();
        if least > 0.0 {
            let taken = least.min(seconds);
            kind.counted.iter_mut().for_each(|(_, work)| *work -= taken);
            if seconds > taken {
                let (place, _) = kind.least();
                kind.counted[place] = (client, seconds - taken);
            }
        } else {
            let (place, _) = kind.least();
            kind.counted[place] = (client, seconds);
        }
    }

    /// What was is worth this part of itself from now on.
    pub(crate) fn fade(&mut self, part: f64) {
        for kind in &mut self.0 {
            kind.work *= part;
            kind.transactions *= part;
            kind.counted.iter_mut().for_each(|(_, work)| *work *= part);
        }
    }

    /// Another kind has this column.
    pub(crate) fn forget(&mut self, column: Column) {
        if let Some(kind) = column.number().and_then(|number| self.0.get_mut(number)) {
            *kind = Kind::default();
        }
    }

    /// The part of the one client who has most, at most: what is counted of nobody may be hers as far as each of the
    /// counters gave as much away.
    pub(crate) fn by_one(&self, column: Column) -> f64 {
        self.part(column, |kind| {
            let counted = || kind.counted.iter().map(|(_, work)| *work);
            let given_away = (kind.work - counted().sum::<f64>()) / (kind.counted.len() + 1) as f64;
            counted().fold(0.0, f64::max) + given_away.max(0.0)
        })
    }

    /// Whether more than a hundredth of it are transactions.
    pub(crate) fn transacts(&self, column: Column) -> bool {
        self.part(column, |kind| kind.transactions) > 0.01
    }

    fn part(&self, column: Column, of: impl Fn(&Kind) -> f64) -> f64 {
        let kind = column.number().and_then(|number| self.0.get(number));
        kind.filter(|kind| kind.work > 0.0).map_or(0.0, |kind| of(kind) / kind.work)
    }
}

impl Kind {
    fn least(&self) -> (usize, f64) {
        let work = self.counted.iter().map(|(_, work)| *work).enumerate();
        work.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: usize = 3;

    fn column() -> Column {
        Column::new(KIND).expect("a column of the table")
    }

    #[test]
    fn one_who_does_much_is_seen_among_many() {
        let mut clients = Clients::default();
        for n in 0..100_000_u64 {
            let client = if n % 2 == 0 { 7 } else { 1000 + n };
            clients.worked(column(), client, 0.01, false);
        }
        let by_one = clients.by_one(column());
        assert!((0.499..0.612).contains(&by_one), "{by_one}: a half, and a ninth more at most");
        clients.fade(0.5);
        assert!((clients.by_one(column()) - by_one).abs() < 1e-9);
        clients.forget(column());
        assert!(clients.by_one(column()) < 1e-9);
    }

    #[test]
    fn many_of_whom_none_does_much_are_no_one() {
        let mut clients = Clients::default();
        (0..100_000).for_each(|n| clients.worked(column(), n % 1000, 0.01, n % 50 == 0));
        let by_one = clients.by_one(column());
        assert!(by_one < 0.12, "{by_one}: a ninth could be anybody's");
        assert!(clients.transacts(column()), "one in fifty");
    }
}
