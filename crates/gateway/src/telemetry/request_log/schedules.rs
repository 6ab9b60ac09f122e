//! Tests watchers that come and go while requests end, on the schedules of `make shuttle`.

use std::sync::Arc;

use bywash_config::AccessLog as Target;
use prometheus_client::metrics::counter::Counter;
use shuttle::sync::atomic::Ordering;
use shuttle::thread;

use super::{Entry, RequestLog, WATCHERS};
use crate::process::sync::explore;
use crate::telemetry::access_log::AccessLog;

fn request_log() -> Arc<RequestLog> {
    Arc::new(RequestLog::new(
        AccessLog::open(&Target::Off, Counter::default()).expect("nothing is opened"),
    ))
}

fn note(request_log: &RequestLog, name: u64) {
    request_log.note(Arc::new(Entry { name, ..Entry::now() }));
}

fn watched(request_log: &RequestLog) -> usize {
    request_log.watched.load(Ordering::Relaxed)
}

#[test]
fn schedules_in_which_a_watcher_sees_what_ends_after_it_came() {
    explore("request log, two watch and one notes", || {
        let request_log = request_log();
        let threads: Vec<_> = (1..=2)
            .map(|name| {
                let request_log = Arc::clone(&request_log);
                thread::spawn(move || {
                    let mut watcher = request_log.watch().expect("there is room");
                    note(&request_log, name);
                    let mut seen = std::iter::from_fn(|| watcher.try_recv().ok());
                    assert!(seen.any(|entry| entry.name == name));
                    assert!(request_log.find(name).is_some());
                })
            })
            .collect();
        note(&request_log, 3);
        note(&request_log, 4);
        for thread in threads {
            thread.join().expect("it has not panicked");
        }
        // The log notices that a watcher has left when it records the next request.
        note(&request_log, 5);
        assert_eq!((watched(&request_log), request_log.missed()), (0, 0));
        assert!((1..=5).all(|name| request_log.find(name).is_some()));
    });
}

#[test]
fn schedules_in_which_more_want_to_watch_than_may() {
    explore("request log, one more than may watch", || {
        let request_log = request_log();
        let first: Vec<_> = (1..WATCHERS).map(|_| request_log.watch()).collect();
        let threads = [0, 1].map(|_| {
            let request_log = Arc::clone(&request_log);
            thread::spawn(move || request_log.watch())
        });
        note(&request_log, 1);
        let last = threads.map(|thread| thread.join().expect("it has not panicked"));
        assert_eq!(last.iter().flatten().count(), 1);
        assert_eq!(watched(&request_log), WATCHERS);
        drop((first, last));
        note(&request_log, 2);
        assert_eq!(watched(&request_log), 0);
    });
}
