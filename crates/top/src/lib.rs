//! `bywash top`: shows on a screen of the terminal, second by second, what a running gateway is
//! doing, and takes decisions of an operator.
//!
//! The screen shows what the console shows, from the same API:
//!
//! - `feed` queries the gateway on a separate thread.
//! - `sums` has the sums over a window, as the gateway returns them.
//! - `rows` keeps the last ten seconds, from which it derives the state in one word.
//! - `model` has the known state of the gateway, and the user's settings of the tables.
//! - `lists` converts the model into tables, each a `grid`.
//! - `screen` reacts to keys and updates, with `keys`, `text_input`, `ask` and `details`.
//! - `view` draws the screen.
//! - `printed` prints the same data if there is no terminal.
//!
//! Only this file (`lib.rs`) uses the terminal.
#![forbid(unsafe_code)]

mod amount;
mod args;
mod ask;
mod details;
mod feed;
mod grid;
mod headline;
mod keys;
mod lists;
mod model;
mod printed;
mod rows;
#[cfg(test)]
mod sample;
mod screen;
mod sums;
mod tables;
mod text_input;
mod view;

use std::io::{self, IsTerminal};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bywash_command::Failure;
use bywash_command::operators;
use bywash_command::signals::{SignalRequest, Signals};
use bywash_command::streams::{print_while_read, wants_colour};
use bywash_units::TimeSpan;
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind,
};

pub use args::Top;
use feed::{Feed, Update};
use model::Model;
use screen::Screen;
use view::Paint;

/// The maximum delay until the screen shows an update from the gateway.
const UPDATE_POLL: Duration = Duration::from_millis(50);
/// The interval at which the program checks whether the terminal is gone, in case no signal reports
/// it.
const TERMINAL_POLL: Duration = Duration::from_secs(1);
/// The exit code that shells expect of a process that SIGHUP ended.
const HUNG_UP: i32 = 129;
/// The shortest interval between two printed tables. A person cannot read them faster, and shorter
/// intervals load the gateway.
const SHORTEST: TimeSpan = TimeSpan::from_millis(100);

/// Shows the screen. Prints instead if `--json` or `--count` is given, or if standard input or
/// standard output is not a terminal.
///
/// # Errors
/// If no gateway answers, or if its answers cannot be shown.
pub fn top(args: &Top) -> Result<(), Failure> {
    let by = args.by.clone().unwrap_or_else(operators::user);
    let mut feed = Feed::new(args.which.clone(), by.clone(), args.window);
    // If no gateway answers, this fails before the terminal is switched to the screen.
    let model = Model::new(feed.fetch()?);
    let has_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    if args.json || args.count.is_some() || !has_terminal {
        return print(args, feed, model);
    }
    let (commands, updates) = feed.start();
    let screen = Screen::new(model, args.which.admin.to_string(), by, commands);
    show(screen, &updates)
}

/// Prints a table or a JSON document once every interval.
fn print(args: &Top, mut feed: Feed, mut model: Model) -> Result<(), Failure> {
    if args.interval < SHORTEST {
        return Err(Failure::usage(format!("--interval must be {SHORTEST} or longer")));
    }
    for printed in 1.. {
        let text = if args.json {
            printed::json(&model).map_err(Failure::running)? + "\n"
        } else {
            printed::text(&model)
        };
        let is_over = args.count.is_some_and(|count| printed >= count);
        if !print_while_read(&text)? || is_over {
            break;
        }
        thread::sleep(args.interval.to_std());
        model.take(feed.fetch()?);
    }
    Ok(())
}

/// A guard that restores the terminal when it is dropped.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    ratatui::restore();
    // Ratatui hides the cursor when it draws, and shows it only when a `Terminal` is dropped. If
    // the terminal is gone, a failure does not matter.
    let _ = ratatui::crossterm::execute!(io::stdout(), DisableBracketedPaste, Show);
}

fn show(mut screen: Screen, updates: &Receiver<Update>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::running(format!("the terminal failed: {error}"));
    let signals = Signals::catch().map_err(failed)?;
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        default_hook(panic);
    }));
    let mut terminal = ratatui::try_init().map_err(failed)?;
    // Without bracketed paste, pasted text would arrive as single keys, and each could be a
    // command.
    let _ = ratatui::crossterm::execute!(io::stdout(), EnableBracketedPaste);
    let _restored = Restored;
    exit_with_terminal(signals);
    watch(&mut terminal, &mut screen, updates).map_err(failed)
}

/// Ends the process on a signal, or when the terminal is gone. Without a terminal, crossterm reads
/// the end of file forever and returns nothing.
fn exit_with_terminal(mut signals: Signals) {
    thread::spawn(move || {
        let code = loop {
            match signals.wait_for(TERMINAL_POLL) {
                Some(SignalRequest::End(signal)) => break 128 + signal,
                // SIGHUP: the terminal has hung up.
                Some(SignalRequest::Reload) => break HUNG_UP,
                None if !io::stdin().is_terminal() => break HUNG_UP,
                Some(SignalRequest::Upgrade) | None => {}
            }
        };
        // The lock is kept, so that nothing is drawn any more.
        let _drawn = io::stdout().lock();
        restore();
        std::process::exit(code);
    });
}

/// Draws the screen and handles events until the user quits.
fn watch(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    updates: &Receiver<Update>,
) -> io::Result<()> {
    let paint = Paint { has_colour: wants_colour() };
    loop {
        terminal.draw(|frame| view::draw(frame, screen, paint))?;
        loop {
            let is_another = event::poll(UPDATE_POLL)?;
            if is_another && !handle_event(screen, &event::read()?) {
                return Ok(());
            }
            if take(screen, updates)? || is_another {
                break;
            }
        }
    }
}

/// Handles an event of the terminal. Returns whether the program continues.
fn handle_event(screen: &mut Screen, event: &Event) -> bool {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => screen.key(*key),
        Event::Paste(text) => {
            screen.paste(text);
            true
        }
        _ => true,
    }
}

/// Applies all pending updates. Returns whether there were any.
fn take(screen: &mut Screen, updates: &Receiver<Update>) -> io::Result<bool> {
    let mut is_new = false;
    loop {
        match updates.try_recv() {
            Ok(one) => screen.apply(one, now()),
            Err(TryRecvError::Empty) => return Ok(is_new),
            Err(TryRecvError::Disconnected) => {
                return Err(io::Error::other("the thread that asks the gateway has ended"));
            }
        }
        is_new = true;
    }
}

/// Returns the time in milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
