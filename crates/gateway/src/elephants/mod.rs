//! Elephants in force: which requests fall under which rule, and the book of all findings and
//! decisions.
//!
//! Three threads meet here. Requests ask [`Elephants::rule_of`], which never waits: the rules are
//! one immutable list that is exchanged as a whole. The watching thread ([`watch`]) brings its
//! findings, and ends rules whose time is over. Operators (`admin/elephants.rs`) read the book and
//! decide. Each change of the book puts its rules in force and hands its text to `state_writer`,
//! under one lock. No request takes that lock, and nobody holds it while waiting for a disk.
//!
//! **Bytes.** Answers under a rule that limits bytes go through a lane of the network device
//! ([`lanes`]) or through the rule's bucket ([`bytes`]), each answer by itself. An answer begins
//! with the bucket (`request/answer.rs`). HTTP/1 writes one answer at a time and has the socket for
//! itself. Before it writes a head, it puts the connection into the lane of that answer
//! (`client/h1/answer.rs`). An answer that got the elephants' lane bypasses the bucket for as long
//! as there are lanes. On HTTP/2 answers share a socket, and keep the bucket.

mod bytes;
mod lanes;
mod rules;
pub(crate) mod watch;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bywash_control::{Book, Note, Refused, Watch, Written};
use bywash_engine::classify::Classifier;
use bywash_engine::throttle::RuleId;
use bywash_message::Request;

use crate::driver::Driver;
use crate::shared::Shared;
use crate::state_writer::{Document, Version};
use crate::talk::say;
use crate::undecided::Undecided;
use crate::{aside, aside::Inherited, wall};

pub(crate) use bytes::Paced;
pub(crate) use lanes::{Lanes, NoLane};
pub(crate) use rules::Rules;
pub(crate) use watch::Sight;

/// The size limit of a saved book in bytes: more than all allowed entries with long patterns.
const MOST: u64 = 4 << 20;

/// The state of a gateway's elephants that its threads share.
pub(crate) struct Elephants {
    rules: RwLock<Arc<Rules>>,
    /// Whether there are any rules. If not, requests skip the look-up.
    has_rules: AtomicBool,
    /// The lanes for answers that are throttled.
    pub(crate) lanes: Lanes,
    desk: Mutex<Desk>,
    /// Observations of requests and of use. A thread that locks both this and the desk locks the
    /// desk first.
    watch: Mutex<Watch>,
}

/// The book, and the place where it is saved.
#[derive(Default)]
pub(crate) struct Desk {
    book: Book,
    /// The directory that it is saved in; `None` if it is not saved.
    directory: Option<PathBuf>,
    /// Set if the book was handed over by another process.
    inherited: Option<Inherited>,
    /// Whether another process takes the decisions.
    is_given_away: bool,
    /// The state of the watch when it last reported.
    pub(crate) sight: Sight,
    /// Increased with every finding and decision.
    revision: u64,
}

impl Elephants {
    pub(crate) fn new() -> Self {
        Self {
            rules: RwLock::default(),
            has_rules: AtomicBool::new(false),
            lanes: Lanes::open(),
            desk: Mutex::default(),
            watch: Mutex::new(Watch::new(
                Vec::new(),
                Vec::new(),
                bywash_units::Span::from_secs(1800),
            )),
        }
    }

    /// Returns the rule that a request falls under. Its path is read as the classifier reads it.
    pub(crate) fn rule_of(&self, request: &Request, classifier: &Classifier) -> Option<RuleId> {
        if !self.has_rules.load(Ordering::Relaxed) {
            return None;
        }
        let (method, target) = (request.method.as_str(), &request.target);
        self.rules().of(method, target.path_and_query(), classifier.readings(target.path()))
    }

    /// Returns the pacing for an answer under this rule, if the rule limits bytes.
    pub(crate) fn paced(&self, rule: Option<RuleId>) -> Option<Paced> {
        self.rules().bucket_of(rule?).map(Paced::new)
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the decisions of an earlier process and the rules of the file. To be called before the
    /// first request, and only after that process has stopped deciding.
    pub(crate) fn open(&self, shared: &Shared) {
        let settings = shared.settings();
        let mut desk = self.desk();
        desk.directory = settings.config.state.as_ref().map(|state| state.directory.clone());
        if let Some(directory) = &desk.directory {
            match &desk.inherited {
                Some(inherited) if inherited.is_newer(directory, desk.book.was_decided()) => {
                    inherited.makes_room(directory, Document::Elephants.name());
                    desk.save(shared);
                }
                _ => desk.book = load(shared, directory).numbered_after(&desk.book),
            }
        }
        desk.book.began_by(wall::now());
        // Rules that have ended meanwhile must not be in force even for a moment. Their trials were
        // not measured.
        let notes = desk.book.tick(wall::now(), |_, _, _| bywash_control::Gauge::default());
        shared.audit.note(&shared.state_writer, notes, None);
        self.put_in_force(&desk.book, &shared.driver);
        drop(desk);
        self.configured(shared);
    }

    /// Puts the rules of the configuration file in force.
    pub(crate) fn configured(&self, shared: &Shared) {
        let settings = shared.settings();
        let said: Vec<Written> = settings.config.elephants.throttles.iter().map(written).collect();
        let decided = self.decide(shared, |book| book.file_says(wall::now(), &said));
        if let Err(why) = decided {
            say(format_args!(
                "the [throttle] rules of the configuration file are not in force: {why}"
            ));
        }
    }

    /// Changes the book and puts its rules in force at once, even if the book cannot be saved.
    /// Returns the version to be saved.
    ///
    /// # Errors
    /// If the change is not possible. Then nothing has changed.
    pub(crate) fn decide(
        &self,
        shared: &Shared,
        decision: impl FnOnce(&mut Book) -> Result<Vec<Note>, Refused>,
    ) -> Result<Option<Version>, Undecided<Refused>> {
        let driver = &shared.driver;
        let mut desk = self.desk();
        if desk.is_given_away {
            return Err(Undecided::GivenAway);
        }
        let mut book = desk.book.clone();
        let notes = decision(&mut book)?;
        let has_other_exempt = book.exempt(&self.watched());
        if notes.is_empty() {
            // At most new evidence, which is saved with the next decision.
            desk.book = book;
            if has_other_exempt {
                self.put_in_force(&desk.book, driver);
                desk.save(shared);
            }
            desk.revision += 1;
            return Ok(None);
        }
        desk.book = book;
        desk.revision += 1;
        self.put_in_force(&desk.book, driver);
        let version = desk.save(shared);
        shared.audit.note(&shared.state_writer, notes, version);
        Ok(version)
    }

    /// Ends rules whose time is over, even if that cannot be saved: after a restart they would end
    /// at once.
    fn end(&self, shared: &Shared, tick: impl FnOnce(&mut Book) -> Vec<Note>) {
        let mut desk = self.desk();
        if desk.is_given_away {
            return;
        }
        let notes = tick(&mut desk.book);
        if notes.is_empty() {
            return;
        }
        self.put_in_force(&desk.book, &shared.driver);
        desk.revision += 1;
        let version = desk.save(shared);
        shared.audit.note(&shared.state_writer, notes, version);
    }

    /// Sets whether another process takes the decisions from now on, or this one again. Otherwise a
    /// decision made here after that process has read the book would be lost, or would overwrite
    /// one of its decisions.
    pub(crate) fn give_away(&self, is_given_away: bool) {
        self.desk().is_given_away = is_given_away;
    }

    /// Locks the book and the state of the watch, for reading.
    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the observations, for new ones or for questions.
    pub(crate) fn watched(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the watch, because the resources or pins have changed.
    fn watch(&self, watch: Watch) {
        *self.watched() = watch;
    }

    /// The engine gets a rule before requests fall under it. A request that still falls under a
    /// rule that the engine has removed is queued like any other.
    fn put_in_force(&self, book: &Book, driver: &Driver) {
        let in_force = book.in_force();
        let rules = Arc::new(Rules::new(&in_force, &self.rules(), driver.now()));
        let lanes: Vec<_> = in_force.iter().map(|rule| (rule.id, rule.rule)).collect();
        driver.throttle(&lanes);
        self.has_rules.store(!rules.is_empty(), Ordering::Relaxed);
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }
}

impl Desk {
    /// A number that increases with every finding and decision.
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    /// Takes over the decisions of an earlier process.
    pub(crate) fn inherit(&mut self, text: &str, inherited: Inherited) {
        match Book::read(text) {
            Ok(book) => (self.book, self.inherited) = (book, Some(inherited)),
            Err(why) => say(format_args!(
                "the earlier decisions about elephants are lost, because they cannot be read: {why}"
            )),
        }
    }

    /// Stores the state of the watch. Its findings follow.
    fn saw(&mut self, sight: Sight) {
        self.sight = sight;
        self.revision += 1;
    }

    pub(crate) const fn book(&self) -> &Book {
        &self.book
    }

    /// Returns whether decisions outlive this process.
    pub(crate) const fn is_kept(&self) -> bool {
        self.directory.is_some()
    }

    fn save(&self, shared: &Shared) -> Option<Version> {
        shared.state_writer.submit(Document::Elephants, self.book.text())
    }
}

fn load(shared: &Shared, directory: &std::path::Path) -> Book {
    let name = Document::Elephants.name();
    let read = bywash_handover::load(directory, name, MOST).map_err(|error| error.to_string());
    let book = read.and_then(|bytes| {
        let Some(bytes) = bytes else { return Ok(Book::default()) };
        Book::read(&String::from_utf8_lossy(&bytes)).map_err(|error| error.to_string())
    });
    book.unwrap_or_else(|error| {
        shared.metrics.gauges().state_unreadable.inc();
        let kept = aside::put(directory, name);
        say(format_args!(
            "starting without the rules that operators approved before: {error}; {kept}"
        ));
        Book::default()
    })
}

fn written(throttle: &bywash_config::Throttle) -> Written {
    let bywash_config::Throttle { pattern, why, rule, bytes } = throttle;
    let grants = bywash_control::Grants {
        at_once: rule.at_once,
        rate: rule.rate.map(bywash_units::Rate::get),
        queue: rule.queue,
        wait: rule.wait,
        bytes: *bytes,
    };
    Written { pattern: pattern.clone(), grants, why: why.clone() }
}
