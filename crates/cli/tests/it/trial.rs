//! Tests of `bywash elephants try` with real load: its measurements, and its end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bywash_control::{Act, Elephant, Resource, RuleStore, Timestamp};
use serde_json::Value;

use crate::binary::bywash;
use crate::folder::Folder;
use crate::gateway::{Gateway, get};

/// The time that the application computes for a report. Any other page takes a fiftieth of this
/// time.
const REPORT: Duration = Duration::from_millis(50);

/// An application with one worker thread, which serves requests in the order of arrival. It counts
/// the requests for reports that have arrived and are not answered yet.
struct Application {
    address: SocketAddr,
    present: Arc<AtomicUsize>,
}

impl Application {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (jobs, work) = channel::<(bool, Sender<()>)>();
        thread::spawn(move || {
            for (is_report, done) in work {
                let begun = Instant::now();
                let takes = if is_report { REPORT } else { REPORT / 50 };
                while begun.elapsed() < takes {
                    std::hint::spin_loop();
                }
                let _ = done.send(());
            }
        });
        let present = Arc::new(AtomicUsize::new(0));
        let reports = Arc::clone(&present);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (jobs, reports) = (jobs.clone(), Arc::clone(&reports));
                thread::spawn(move || serve(&stream, &jobs, &reports));
            }
        });
        Self { address, present }
    }

    /// Returns the maximum number of unanswered requests for reports during the time `within`.
    fn most(&self, within: Duration) -> usize {
        let end = Instant::now() + within;
        let mut most = 0;
        while Instant::now() < end {
            most = most.max(self.present.load(SeqCst));
            thread::sleep(Duration::from_millis(1));
        }
        most
    }
}

fn serve(mut stream: &TcpStream, jobs: &Sender<(bool, Sender<()>)>, reports: &AtomicUsize) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        while lines.next().is_some_and(|field| !field.is_empty()) {}
        let is_report = first.contains("/report");
        reports.fetch_add(usize::from(is_report), SeqCst);
        let (done, is_done) = channel();
        let worked = jobs.send((is_report, done)).is_ok() && is_done.recv().is_ok();
        reports.fetch_sub(usize::from(is_report), SeqCst);
        if !worked || stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

/// Clients that send a new request as soon as the last one is answered. They stop when this value
/// is dropped.
struct Clients(Arc<AtomicBool>, Vec<thread::JoinHandle<()>>);

impl Clients {
    fn of(address: &str) -> Self {
        let go = Arc::new(AtomicBool::new(true));
        let client = |number: usize| {
            let (address, go) = (address.to_owned(), Arc::clone(&go));
            thread::spawn(move || {
                for round in 0.. {
                    if !go.load(SeqCst) {
                        return;
                    }
                    let is_report = number < 4;
                    let path =
                        if is_report { format!("/report?n={round}") } else { "/item".into() };
                    get(&address, &path);
                    thread::sleep(Duration::from_millis(if is_report { 1 } else { 20 }));
                }
            })
        };
        let all = (0..6).map(client).collect();
        Self(go, all)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
        self.1.drain(..).for_each(|client| drop(client.join()));
    }
}

fn report() -> Elephant {
    Elephant {
        pattern: "/report?n".into(),
        twins: Vec::new(),
        resource: "application".into(),
        consists_of: Resource::Processors,
        capacity: 2.0,
        used: 0.5,
        cost: 0.05,
        interval: [0.04, 0.06],
        share: 0.9,
        rate: 18.0,
        lasts: 0.1,
        provisional: false,
        by_one: 0.02,
        one_client: None,
        transacts: false,
        correlation: None,
    }
}

/// Writes a configuration with this application as the upstream, and returns its path.
fn configured(folder: &Folder, application: &Application) -> String {
    let state = folder.path("state");
    fs::create_dir(&state).unwrap();
    let mut store = RuleStore::default();
    store.found(Timestamp::now(), vec![report()], Act::Propose);
    bywash_handover::save(Path::new(&state), "elephants", store.text().as_bytes()).unwrap();
    let name = fs::read_to_string("/proc/self/comm").unwrap();
    let number = folder.file("pid", std::process::id().to_string());
    let text = format!(
        "version = 1\nupstream.server = \"http://{}\"\nupstream.limit = 100\nlog.access = \"off\"\n\
         state.directory = \"{state}\"\n[resource.application]\nread = \"process/{}/cpu\"\n\
         from = \"{number}\"\n",
        application.address,
        name.trim(),
    );
    folder.file("bywash.toml", text)
}

#[test]
fn a_trial_holds_back_for_its_time_and_has_measured_what_that_did() {
    let (application, folder) = (Application::new(), Folder::new());
    let file = configured(&folder, &application);
    let gateway = Gateway::start(&["--config", &file]);
    let admin = gateway.operators();
    let _clients = Clients::of(&gateway.clients());
    let entry = || bywash(&["elephants", "show", "1", "--json", "--admin", &admin]).json();
    assert!(application.most(Duration::from_secs(11)) > 1, "nobody holds them back yet");
    let word = ["--for", "10s", "--by", "me", "--why", "is it the report?", "--admin", &admin];
    let tried = bywash(&[&["elephants", "try", "1", "--max-concurrency", "1"][..], &word].concat());
    assert!(tried.code == Some(0) && tried.out.contains("during  not over yet"), "{tried:?}");
    // The reports that already run, at most four, end first. They are not stopped.
    application.most(Duration::from_secs(1));
    assert_eq!(application.most(Duration::from_secs(7)), 1);
    assert_eq!(entry()["state"]["ruled"]["origin"], "trial");
    let begun = Instant::now();
    while entry()["state"] != "proposed" {
        assert!(begun.elapsed().as_secs() < 20, "{}", entry());
        thread::sleep(Duration::from_millis(50));
    }
    let begun = Instant::now();
    while application.present.load(SeqCst) < 2 {
        assert!(begun.elapsed().as_secs() < 20, "reports are still held back");
        thread::sleep(Duration::from_millis(1));
    }
    let list = bywash(&["elephants", "list", "--json", "--admin", &admin]).json();
    let trial = list["elephants"][0]["trial"].clone();
    assert_eq!(trial["predicted"]["elephants_most"], 0.5, "{trial}");
    let number = |when: &str, path: &str| trial[when].pointer(path).unwrap().as_f64().unwrap();
    for when in ["before", "during"] {
        assert!((9.0..13.0).contains(&number(when, "/seconds")), "{trial}");
        assert!(number(when, "/used") > 0.05, "{trial}");
        for lot in ["ants", "elephants"] {
            assert!(number(when, &format!("/{lot}/answered")) > 1.0, "{trial}");
        }
    }
    // Before the trial, other requests wait behind up to four reports. During the trial, they wait
    // behind one.
    let [before, during] = ["before", "during"].map(|when| number(when, "/ants/p50"));
    assert!(during < 0.7 * before, "{trial}");
    let shown = bywash(&["elephants", "show", "1", "--admin", &admin]).out;
    assert!(shown.contains("  before  ") && shown.contains("  during  "), "{shown}");
    assert!(!shown.contains("not over yet"), "{shown}");
    // The gateway may write the last note to the audit log after it has ended the rule.
    let audit = loop {
        let audit = fs::read_to_string(folder.path("state/audit.jsonl")).unwrap();
        if audit.matches('\n').count() >= 2 {
            break audit;
        }
        assert!(begun.elapsed().as_secs() < 30, "{audit}");
        thread::sleep(Duration::from_millis(20));
    };
    let notes = audit.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let notes: Vec<_> = notes.map(|note| [note["what"].clone(), note["by"].clone()]).collect();
    assert_eq!(notes, [["tried", "me"], ["ended", "bywash"]].map(|note| note.map(Value::from)));
}
