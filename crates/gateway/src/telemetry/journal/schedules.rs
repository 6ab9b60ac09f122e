//! Watchers that come and go while requests end, on as many schedules as `make shuttle` has time
//! for.

use std::sync::Arc;

use bywash_config::AccessLog as Target;
use prometheus_client::metrics::counter::Counter;
use shuttle::sync::atomic::Ordering;
use shuttle::thread;

use super::{Entry, Journal, WATCHERS};
use crate::process::sync::explore;
use crate::telemetry::access_log::AccessLog;

fn journal() -> Arc<Journal> {
    Arc::new(Journal::new(
        AccessLog::open(&Target::Off, Counter::default()).expect("nothing is opened"),
    ))
}

fn note(journal: &Journal, name: u64) {
    journal.note(Arc::new(Entry { name, ..Entry::now() }));
}

fn watched(journal: &Journal) -> usize {
    journal.watched.load(Ordering::Relaxed)
}

#[test]
fn schedules_in_which_a_watcher_sees_what_ends_after_it_came() {
    explore("journal, two watch and one notes", || {
        let journal = journal();
        let threads: Vec<_> = (1..=2)
            .map(|name| {
                let journal = Arc::clone(&journal);
                thread::spawn(move || {
                    let mut watcher = journal.watch().expect("there is room");
                    note(&journal, name);
                    let mut seen = std::iter::from_fn(|| watcher.try_recv().ok());
                    assert!(seen.any(|entry| entry.name == name));
                    assert!(journal.find(name).is_some());
                })
            })
            .collect();
        note(&journal, 3);
        note(&journal, 4);
        for thread in threads {
            thread.join().expect("it has not panicked");
        }
        // A watcher that has left is noticed at the next request.
        note(&journal, 5);
        assert_eq!((watched(&journal), journal.missed()), (0, 0));
        assert!((1..=5).all(|name| journal.find(name).is_some()));
    });
}

#[test]
fn schedules_in_which_more_want_to_watch_than_may() {
    explore("journal, one more than may watch", || {
        let journal = journal();
        let first: Vec<_> = (1..WATCHERS).map(|_| journal.watch()).collect();
        let threads = [0, 1].map(|_| {
            let journal = Arc::clone(&journal);
            thread::spawn(move || journal.watch())
        });
        note(&journal, 1);
        let last = threads.map(|thread| thread.join().expect("it has not panicked"));
        assert_eq!(last.iter().flatten().count(), 1);
        assert_eq!(watched(&journal), WATCHERS);
        drop((first, last));
        note(&journal, 2);
        assert_eq!(watched(&journal), 0);
    });
}
