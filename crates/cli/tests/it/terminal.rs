//! A pseudo-terminal for a command, made with `script` of util-linux, and the content of its
//! screen.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::binary::{command, wait};

/// A timeout that exceeds any drawing on a busy machine.
const LONGEST: Duration = Duration::from_secs(30);

pub(crate) const COLUMNS: usize = 80;
pub(crate) const LINES: usize = 24;

/// A shell command line in a terminal of 80 columns and 24 lines.
pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    drawn: Receiver<Vec<u8>>,
    screen: Screen,
    /// All bytes that were written to the terminal.
    pub(crate) output: String,
}

impl Terminal {
    /// Runs `bywash` with these arguments in a terminal. The shell prints the settings of the
    /// terminal (`stty -g`) before and after the command, and the command's exit code.
    pub(crate) fn start(args: &[&str]) -> Self {
        let line = format!(
            "stty rows {LINES} cols {COLUMNS}; echo \"before $(stty -g)\"; \
             sh -c 'echo \"pid $$\"; exec \"$BYWASH\" {}'; code=$?; echo; \
             echo \"after $(stty -g)\"; echo \"code $code\"",
            args.join(" ")
        );
        // The command gets the environment of the tests: their operators' keys, and their user.
        let bywash = command(&[]);
        let mut script = Command::new("script");
        script.args(["-q", "-e", "-c", &line, "/dev/null"]).env("SHELL", "/bin/sh");
        script.env("BYWASH", bywash.get_program()).env("TERM", "xterm-256color");
        script.envs(bywash.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = script.spawn().expect("script of util-linux");
        let (keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, drawn) = channel();
        thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(read @ 1..) = out.read(&mut some) {
                if tell.send(some[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, drawn, screen: Screen::default(), output: String::new() }
    }

    /// Sends these keys to the terminal.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until the screen satisfies the condition `is`, and returns the lines of the screen.
    /// `what` describes the condition in the message of a failure.
    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&[String]) -> bool) -> Vec<String> {
        let end = Instant::now() + LONGEST;
        loop {
            let lines = self.screen.lines();
            if is(&lines) {
                return lines;
            }
            let left = end.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.drawn.recv_timeout(left) else {
                panic!("not so: {what}\n{}", lines.join("\n"));
            };
            self.output += &String::from_utf8_lossy(&bytes);
            self.screen.write(&bytes);
        }
    }

    /// Waits until a line of the screen contains these words, and returns the line.
    pub(crate) fn shows(&mut self, words: &str) -> String {
        let has = |line: &String| line.contains(words);
        let lines = self.until(words, |lines| lines.iter().any(has));
        lines.into_iter().find(has).unwrap()
    }

    /// Returns the next word after `word` in the output of the shell.
    pub(crate) fn word_after(&self, word: &str) -> &str {
        let rest = self.output.split(word).nth(1);
        let rest = rest.unwrap_or_else(|| panic!("no {word}: {:?}", self.output));
        rest.split_whitespace().next().unwrap()
    }

    /// Waits until the command ends.
    pub(crate) fn ends(mut self) -> Self {
        self.shows("code ");
        wait(&mut self.child, LONGEST);
        self
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The kill fails if the command has ended already, which is no problem.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The part of a terminal that the tests need: characters and the cursor.
#[derive(Default)]
struct Screen {
    cells: Vec<Vec<char>>,
    line: usize,
    column: usize,
    /// The bytes of an escape sequence or character that is incomplete.
    pending: Vec<u8>,
}

impl Screen {
    fn write(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = &pending[..];
        while let Some(used) = self.step(rest) {
            rest = &rest[used..];
        }
        self.pending = rest.to_vec();
    }

    /// Handles one character or escape sequence. Returns its length in bytes; `None` if it is
    /// incomplete.
    fn step(&mut self, bytes: &[u8]) -> Option<usize> {
        match *bytes.first()? {
            0x1b if *bytes.get(1)? == b'[' => {
                let end = 2 + bytes[2..].iter().position(|byte| (0x40..0x7f).contains(byte))?;
                self.control(std::str::from_utf8(&bytes[2..end]).unwrap(), bytes[end]);
                Some(end + 1)
            }
            0x1b => bytes.get(1).map(|_| 2),
            b'\n' => {
                self.line += 1;
                Some(1)
            }
            b'\r' => {
                self.column = 0;
                Some(1)
            }
            0..0x20 => Some(1),
            first => {
                let length = match first {
                    0..0x80 => 1,
                    0x80..0xe0 => 2,
                    0xe0..0xf0 => 3,
                    _ => 4,
                };
                let text = std::str::from_utf8(bytes.get(..length)?).unwrap();
                self.put(text.chars().next().unwrap());
                Some(length)
            }
        }
    }

    fn control(&mut self, numbers: &str, what: u8) {
        let is_other = numbers == "?1049";
        let mut numbers = numbers.split(';').map(|number| number.parse().unwrap_or(1));
        match what {
            b'H' => {
                self.line = numbers.next().unwrap_or(1usize).saturating_sub(1);
                self.column = numbers.next().unwrap_or(1).saturating_sub(1);
            }
            b'J' => self.cells.clear(),
            // The program switches to the alternate screen, or back.
            b'h' | b'l' if is_other => self.cells.clear(),
            _ => {}
        }
    }

    fn put(&mut self, c: char) {
        let (line, column) = (self.line, self.column);
        self.cells.resize(self.cells.len().max(line + 1), Vec::new());
        let cells = &mut self.cells[line];
        cells.resize(cells.len().max(column + 1), ' ');
        cells[column] = c;
        self.column += 1;
    }

    fn lines(&self) -> Vec<String> {
        self.cells.iter().map(|line| line.iter().collect()).collect()
    }
}
