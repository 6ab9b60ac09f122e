//! The connection of one gateway to the NATS servers.

use std::future::{Future, pending, ready};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ReconnectToServer, Subscriber};
use bywash_config::{Credentials, Fleet};
use bywash_fleet::MemberId;
use bywash_terminal::stderr::say;
use bywash_terminal::text::excerpt;
use bywash_units::{Time, TimeSpan};
use futures_util::StreamExt;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::liveness::{self, Answer, Questions};
use crate::message::{self, MOST, Message, Rejected};
use crate::node::{Node, To};
use crate::reading::{Observations, Reading};
use crate::{Board, Gateway, digest};

/// The pause after an attempt to read the files of the connection.
const RETRY: Duration = Duration::from_secs(5);
/// The maximum time for a message to enter the client's queue.
const SEND: Duration = Duration::from_millis(20);
/// The time without a message from another gateway after which the connection is made again, to
/// another server. A gateway in contact hears another one at least once a second.
const SILENCE: TimeSpan = TimeSpan::from_millis(1_300);
/// The time over which messages are counted for their rate.
const RATE_WINDOW: TimeSpan = TimeSpan::from_secs(5);
/// The maximum number of messages that wait to be sent, and of received ones that wait to be read.
const QUEUE: usize = 256;

/// The parts that a gateway needs to take part in its fleet.
pub struct Start<G> {
    /// The configured fleet.
    pub fleet: Fleet,
    /// The gateway.
    pub gateway: G,
    /// The place for the state of the fleet.
    pub board: Board,
}

/// The subjects of a fleet's messages, for one gateway.
#[derive(Clone)]
struct Subjects {
    /// The subject of the messages to all gateways.
    all: String,
    /// The subject of the messages to this gateway.
    own: String,
    prefix: String,
}

struct Link<G> {
    start: Start<G>,
    subjects: Subjects,
    node: Node,
    /// The messages to send.
    sent: Vec<(To, Message)>,
    /// The questions whether other gateways have ended.
    questions: Questions,
    /// The documents with what other gateways have observed.
    reading: Reading,
    /// When the last message of another gateway came on the present connection; `None` if none has
    /// come.
    heard: Option<Time>,
    was_connected: bool,
    /// When the messages were last counted, and their number then.
    counted: (Time, u64),
}

/// Listens on the address that shows to the others that this process lives, until it ends. Call it
/// before the gateway has a slot.
///
/// # Errors
/// Returns an error if the address cannot be used.
pub fn show_life(fleet: &Fleet) -> io::Result<()> {
    let Some(address) = fleet.own_liveness() else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { liveness::listen(address) })
}

/// Takes part in the fleet until `end` is ready.
///
/// # Errors
/// Returns an error if the machine gives no random numbers. The board shows every other fault, and
/// the connection is tried again.
pub async fn run<G: Gateway>(start: Start<G>, end: impl Future<Output = ()>) -> io::Result<()> {
    let fleet = &start.fleet;
    let subjects = Subjects {
        all: format!("{}.all", fleet.subject),
        own: subject_of(&fleet.subject, id(&fleet.name)),
        prefix: fleet.subject.clone(),
    };
    let now = start.gateway.now();
    let node = Node::new(now, fleet, id, random()?, start.gateway.limit());
    let questions = Questions::new(fleet.gateways.len());
    let mut link = Link {
        start,
        subjects,
        node,
        sent: Vec::new(),
        questions,
        reading: Reading::default(),
        heard: None,
        was_connected: false,
        counted: (now, 0),
    };
    tokio::select! {
        () = link.serve() => {}
        () = end => {}
    }
    Ok(())
}

/// Returns the number of a gateway, which follows from its name.
fn id(name: &str) -> MemberId {
    MemberId(digest(name))
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the machine gives no random numbers"))?;
    Ok(u64::from_be_bytes(bytes))
}

fn subject_of(prefix: &str, member: MemberId) -> String {
    format!("{prefix}.to.{:016x}", member.0)
}

impl<G: Gateway> Link<G> {
    /// Takes part in the fleet for ever.
    async fn serve(&mut self) {
        let heartbeat = self.node.settings().heartbeat.to_std();
        let mut beat = interval(heartbeat);
        // After a pause of the machine, one heartbeat is enough.
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut client: Option<(Client, Subscriber, Subscriber)> = None;
        let (fleet, board) = (self.start.fleet.clone(), self.start.board.clone());
        let subjects = self.subjects.clone();
        let mut connecting = pin!(connect(&fleet, &board, &subjects));
        loop {
            tokio::select! {
                biased;
                _ = beat.tick() => {
                    let now = self.start.gateway.now();
                    let client = client.as_ref().map(|(client, ..)| client);
                    self.check_connection(now, client).await;
                    self.node.beat(now, &self.start.gateway, &mut self.sent);
                    self.ask_for_documents(now);
                    self.send(client).await;
                    self.ask_for_silent(now);
                    self.describe(now);
                }
                Some(answer) = self.questions.answered.recv() => self.answered(&answer),
                connected = &mut connecting, if client.is_none() => client = Some(connected),
                (subject, bytes) = next(&mut client) => {
                    self.receive(&subject, &bytes);
                    self.take_observations();
                    self.send(client.as_ref().map(|(client, ..)| client)).await;
                }
            }
        }
    }

    /// Gives the gateway the observations of others that have come.
    fn take_observations(&mut self) {
        let now = self.start.gateway.now();
        for Observations { gateway, document, age } in self.reading.take_answers(now) {
            if self.start.gateway.learn(&gateway, &document, age) {
                self.reading.note_read(now, gateway);
            }
        }
    }

    /// Asks other gateways for documents, for operators and for this gateway.
    fn ask_for_documents(&mut self, now: Time) {
        self.take_observations();
        for asked in self.start.board.take_asked() {
            self.node.ask(now, asked, &mut self.sent);
        }
        for name in self.reading.next(now, &self.node.current(now)) {
            let path = self.start.gateway.observed(&name);
            let asked = self.reading.ask(now, name, path);
            self.node.ask(now, asked, &mut self.sent);
        }
    }

    /// Shows the state of the fleet to operators, and logs each warning when it first appears.
    fn describe(&mut self, now: Time) {
        let mut added = Vec::new();
        let (since, known) = self.counted;
        let lasted = now.since(since);
        self.start.board.change(|status| {
            let before = std::mem::take(&mut status.warnings);
            self.node.describe(now, status);
            for gateway in &mut status.gateways {
                let age = self.reading.age(now, &gateway.name);
                gateway.observed_ms = age.map(TimeSpan::as_millis);
            }
            if lasted >= RATE_WINDOW {
                let count = status.sent + status.received;
                status.messages_per_s = Some((count - known) as f64 / lasted.as_secs_f64());
                self.counted = (now, count);
            }
            added.extend(status.warnings.iter().filter(|one| !before.contains(one)).cloned());
        });
        for warning in added {
            say(format_args!("fleet: {warning}"));
        }
    }

    /// Asks for each silent gateway whether its process has ended.
    fn ask_for_silent(&mut self, now: Time) {
        let fleet = &self.start.fleet;
        if fleet.liveness.is_empty() {
            return;
        }
        for member in self.node.silent(now) {
            let of =
                fleet.gateways.iter().zip(&fleet.liveness).find(|(name, _)| id(name) == member);
            if let Some((_, address)) = of {
                self.questions.ask(now, member, *address);
            }
        }
    }

    fn answered(&mut self, answer: &Answer) {
        self.questions.close(answer.member);
        if answer.is_down {
            self.node.on_down(answer.asked, self.start.gateway.now(), answer.member);
        }
    }

    /// Lets this gateway send its state at the next heartbeat if the connection is new. Replaces a
    /// connection on which no message has come for a while: its server may be stopped or cut off,
    /// which the client notices much later. A new connection is not replaced before a message has
    /// come on it.
    async fn check_connection(&mut self, now: Time, client: Option<&Client>) {
        let client = client.filter(|client| client.connection_state() == State::Connected);
        if client.is_some() && !self.was_connected {
            self.node.greet();
            self.heard = None;
        }
        self.was_connected = client.is_some();
        if let Some(client) = client
            && self.heard.is_some_and(|heard| now.since(heard) > SILENCE)
        {
            let reconnects = timeout(SEND, client.force_reconnect()).await;
            if matches!(reconnects, Ok(Ok(()))) {
                self.heard = None;
            }
        }
    }

    fn receive(&mut self, subject: &str, bytes: &[u8]) {
        let now = self.start.gateway.now();
        let read = if bytes.len() > MOST {
            Err(Rejected::TooLong)
        } else {
            let text = self.start.fleet.keys.read(subject, bytes);
            text.ok_or(Rejected::Unsigned).and_then(message::read)
        };
        if read.is_ok() {
            self.heard = Some(now);
        }
        let done = read.and_then(|message| {
            self.node.receive(now, message, &self.start.gateway, &mut self.sent)
        });
        let mut logged = None;
        self.start.board.change(|status| {
            status.received += 1;
            if let Err(why) = done {
                let count = status.rejected.entry(why.name().to_owned()).or_default();
                *count += 1;
                logged = (*count == why.logged_at()).then_some(why);
            }
        });
        if let Some(why) = logged {
            say(format_args!("fleet: {}; it was ignored, and later ones are counted", why.text()));
        }
    }

    /// Sends the messages that wait. Without a connection they are dropped, because old messages
    /// would be ignored.
    async fn send(&mut self, client: Option<&Client>) {
        let client = client.filter(|client| client.connection_state() == State::Connected);
        let is_connected = client.is_some();
        let mut count = 0;
        for (to, message) in &self.sent {
            let Some(client) = client else { continue };
            let subject = match to {
                To::All => self.subjects.all.clone(),
                To::One(member) => subject_of(&self.subjects.prefix, *member),
            };
            let bytes = self.start.fleet.keys.sign(&subject, &message::write(message));
            let publish = client.publish(subject, bytes.into());
            if !matches!(timeout(SEND, publish).await, Ok(Ok(()))) {
                // The client's queue is full. The others would wait as well.
                break;
            }
            count += 1;
        }
        self.sent.clear();
        self.start.board.change(|status| {
            status.sent += count;
            status.is_connected = is_connected;
        });
    }
}

/// Waits for the next message. Returns its subject and its bytes.
async fn next(client: &mut Option<(Client, Subscriber, Subscriber)>) -> (String, Vec<u8>) {
    let Some((_, all, own)) = client else { return pending().await };
    let message = tokio::select! {
        message = all.next() => message,
        message = own.next() => message,
    };
    match message {
        Some(message) => (message.subject.to_string(), message.payload.into()),
        // The client has ended its subscriptions, which it does only if it is dropped.
        None => pending().await,
    }
}

/// Creates the client, and repeats that until the files of the connection can be read. The client
/// then connects, and connects again whenever it has to.
async fn connect(
    fleet: &Fleet,
    board: &Board,
    subjects: &Subjects,
) -> (Client, Subscriber, Subscriber) {
    loop {
        match client(fleet, board, subjects).await {
            Ok(client) => return client,
            Err(why) => note_problem(board, &why.to_string()),
        }
        sleep(RETRY).await;
    }
}

async fn client(
    fleet: &Fleet,
    board: &Board,
    subjects: &Subjects,
) -> Result<(Client, Subscriber, Subscriber), Box<dyn std::error::Error>> {
    let client = options(fleet, board)?.connect(&fleet.servers).await?;
    let all = client.subscribe(subjects.all.clone()).await?;
    let own = client.subscribe(subjects.own.clone()).await?;
    Ok((client, all, own))
}

fn options(fleet: &Fleet, board: &Board) -> Result<ConnectOptions, Box<dyn std::error::Error>> {
    let board = board.clone();
    // Each attempt takes the next server, so that it does not wait for a stopped one again.
    let next = AtomicUsize::new(digest(&fleet.name) as usize);
    let mut options = ConnectOptions::new()
        .name(format!("bywash {}", fleet.name))
        .no_echo()
        .ignore_discovered_servers()
        .retry_on_initial_connect()
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| {
            Duration::from_millis(100 * (attempts as u64).clamp(1, 10))
        })
        .reconnect_to_server_callback(move |servers, _| {
            let addr = servers.get(next.fetch_add(1, Ordering::Relaxed) % servers.len().max(1));
            let chosen =
                addr.map(|server| ReconnectToServer { addr: server.addr.clone(), delay: None });
            ready(chosen)
        })
        .connection_timeout(Duration::from_secs(2))
        .ping_interval(Duration::from_secs(2))
        .client_capacity(QUEUE)
        .subscription_capacity(QUEUE)
        .event_callback(move |event| {
            let board = board.clone();
            async move { note_event(&board, &event) }
        });
    options = match &fleet.credentials {
        None => options,
        Some(Credentials::Password { user, file }) => {
            options.user_and_password(user.clone(), secret(file)?)
        }
        Some(Credentials::Nkey(file)) => options.nkey(secret(file)?),
    };
    if let Some(file) = &fleet.ca_file {
        options = options.add_root_certificates(file.clone());
    }
    Ok(options.require_tls(fleet.servers.iter().all(|server| server.starts_with("tls://"))))
}

/// Reads a file with one secret line that other users cannot read.
fn secret(path: &std::path::Path) -> Result<String, String> {
    let text = bywash_files::secret(path);
    text.map(|text| text.trim().to_owned())
        .map_err(|why| format!("cannot read {}: {why}", path.display()))
}

fn note_event(board: &Board, event: &Event) {
    match event {
        Event::Connected => {
            board.change(|status| status.problem = None);
            say("fleet: connected to a NATS server");
        }
        Event::Disconnected => note_problem(board, "the connection to the NATS server has ended"),
        event => note_problem(board, &event.to_string()),
    }
}

/// Tells a fault of the connection, and logs it unless it was the last one too.
fn note_problem(board: &Board, why: &str) {
    let why = excerpt(why, 200);
    let mut is_new = false;
    board.change(|status| {
        is_new = status.problem.as_ref() != Some(&why);
        status.problem = Some(why.clone());
    });
    if is_new {
        say(format_args!("fleet: {why}"));
    }
}
