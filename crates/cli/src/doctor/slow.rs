//! Whether the application stops working when its client closes, seen from outside.
//!
//! A request for a path that takes the time T alone is timed in two crowds: beside as many as
//! `upstream.limit` that go on (the control: it shows that they are in its way at all), and beside
//! as many that have been abandoned. If abandoned work stops, the second time is T; if it goes on,
//! it is the first. Where the control is no slower than T there is room for everybody, and nothing
//! can be told.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_config::{Config, Scheme, Server};
use bywash_message::Fields;
use bywash_tls::Connector;
use http::Method;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::finding::Finding;
use super::wire::{Line, dial, millis, shown};
use crate::certificates::client_options;
use crate::streams::say;

const CHECK: &str = "abandoned work";

/// Requests of a crowd at most: enough for any pool of workers that one would test so.
const MOST: usize = 256;

/// How long a crowd has worked when it leaves.
const HEAD_START: Duration = Duration::from_millis(200);

/// Of a request alone. A shorter one is over before anybody can leave; a longer one makes the test
/// longer, and tells no more.
const USEFUL: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(20);

/// After this nothing is waited for.
const LONGEST: Duration = Duration::from_secs(60);

/// How long one request took.
#[derive(Clone, Copy, Debug)]
struct Times {
    alone: Duration,
    /// Beside those that go on.
    kept: Duration,
    /// Beside those that were abandoned.
    left: Duration,
}

/// What follows from it about the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Stops,
    /// It stops some of it, or later.
    Partly,
    GoesOn,
    /// It has room for more than the crowd.
    HasRoom,
}

impl Times {
    /// The part of the way from one time to the other, by thirds: a busy machine blurs them.
    fn judge(self) -> Answer {
        let seconds = |time: Duration| time.as_secs_f64();
        let way = seconds(self.kept) - seconds(self.alone);
        if way < 0.3 * seconds(self.alone) {
            return Answer::HasRoom;
        }
        match (seconds(self.left) - seconds(self.alone)) / way {
            part if part < 1.0 / 3.0 => Answer::Stops,
            part if part < 2.0 / 3.0 => Answer::Partly,
            _ => Answer::GoesOn,
        }
    }
}

/// Runs it against the servers of `config`: some multiples of the time that `path` takes.
pub(super) async fn test(config: &Config, path: &str) -> Finding {
    if config.upstream.servers.iter().any(|server| server.scheme == Scheme::H2c) {
        let found = "h2c:// servers are not tested";
        return Finding::unknown(CHECK, found, "give the doctor a file with their http:// address");
    }
    let application = Arc::new(Application {
        servers: config.upstream.servers.clone(),
        tls: bywash_tls::client(client_options(&config.upstream, false)).ok(),
        path: path.to_owned(),
    });
    let crowd = (config.engine.limit.start() as usize).min(MOST);
    say(format!(
        "sending up to {} requests for {path} straight to the application, {crowd} of them at once",
        2 * crowd + 4
    ));
    match measure(&application, crowd).await {
        Ok(times) => told(times, crowd, path),
        Err(finding) => finding,
    }
}

async fn measure(application: &Arc<Application>, crowd: usize) -> Result<Times, Finding> {
    // The first may have caches to fill.
    let first = application.whole().await?;
    let second = application.whole().await?;
    let alone = first.min(second);
    if !USEFUL.contains(&alone) {
        let found = format!("{} takes {} alone", application.path, shown(alone));
        let remedy = "name a path by --slow that takes from 0.5 to 20 seconds";
        return Err(Finding::warning(CHECK, found, remedy));
    }
    let mut going_on = JoinSet::new();
    for mut line in application.crowd(crowd).await? {
        going_on.spawn(async move { line.answer(&Method::GET).await.map(drop) });
    }
    tokio::time::sleep(HEAD_START).await;
    let kept = application.whole().await?;
    // The next crowd must find nobody.
    let _ = timeout(LONGEST, going_on.join_all()).await;
    let leaving = application.crowd(crowd).await?;
    tokio::time::sleep(HEAD_START).await;
    drop(leaving);
    let left = application.whole().await?;
    Ok(Times { alone, kept, left })
}

fn told(times: Times, crowd: usize, path: &str) -> Finding {
    let Times { alone, kept, left } = times;
    let measured = format!(
        "{path} takes {} alone, {} beside {crowd} others, {} beside {crowd} that were abandoned \
         after {}",
        shown(alone),
        shown(kept),
        shown(left),
        shown(HEAD_START)
    );
    let finding = match times.judge() {
        Answer::Stops => {
            let caveat = "the application stopped (as far as one can see from outside)";
            Finding::ok(CHECK, format!("{measured}: {caveat}"))
        }
        Answer::Partly => Finding::warning(
            CHECK,
            format!("{measured}: a part of the abandoned work went on, or all of it for a while"),
            REMEDY,
        ),
        Answer::GoesOn => Finding::problem(
            CHECK,
            format!("{measured}: the abandoned work went on, unless another load came in between"),
            REMEDY,
        ),
        Answer::HasRoom => Finding::unknown(
            CHECK,
            format!("{measured}: it has room for all of them, so nothing can be told"),
            "upstream.limit may be lower than need be; repeat with a limit that fills it",
        ),
    };
    let finding = finding.with("alone_ms", millis(alone)).with("beside_others_ms", millis(kept));
    finding.with("beside_abandoned_ms", millis(left)).with("crowd", crowd)
}

const REMEDY: &str = "let it stop when its client closes (ASGI: http.disconnect; Go: the \
                      request's context; Node: the response's `close`). A WSGI or CGI worker \
                      cannot: crowds that leave then put more than upstream.limit requests into it";

/// Who is tested.
struct Application {
    servers: Vec<Server>,
    tls: Option<Connector>,
    path: String,
}

impl Application {
    /// Times one request from connect to the last byte.
    async fn whole(&self) -> Result<Duration, Finding> {
        let begun = Instant::now();
        let ask = async {
            let mut line = self.begin(0).await?;
            line.answer(&Method::GET).await
        };
        match timeout(LONGEST, ask).await {
            Ok(Ok(answer)) if answer.status.is_success() => Ok(begun.elapsed()),
            Ok(Ok(answer)) => Err(self.fails(&format!("answers {}", answer.status.as_u16()))),
            Ok(Err(error)) => Err(self.fails(&format!("fails: {error}"))),
            Err(_) => Err(self.fails(&format!("takes more than {LONGEST:?}"))),
        }
    }

    /// So many at once, each with its request sent, over all servers.
    async fn crowd(self: &Arc<Self>, size: usize) -> Result<Vec<Line>, Finding> {
        let mut lines = JoinSet::new();
        for number in 0..size {
            let application = Arc::clone(self);
            lines.spawn(async move { application.begin(number).await });
        }
        let all: Vec<io::Result<Line>> = match timeout(LONGEST, lines.join_all()).await {
            Ok(all) => all,
            Err(_) => return Err(self.fails("does not take that many connections")),
        };
        let all: io::Result<Vec<Line>> = all.into_iter().collect();
        all.map_err(|error| self.fails(&format!("does not take {size} at once: {error}")))
    }

    async fn begin(&self, number: usize) -> io::Result<Line> {
        let server = &self.servers[number % self.servers.len()];
        let (mut line, _) = dial(server, self.tls.as_ref()).await?;
        let mut fields = Fields::new();
        fields.push(b"Host", server.authority().as_bytes());
        fields.push(b"User-Agent", b"bywash-doctor");
        fields.push(b"Connection", b"close");
        line.ask(&Method::GET, &self.path, &fields, b"").await?;
        Ok(line)
    }

    fn fails(&self, how: &str) -> Finding {
        let found = format!("{} {how}", self.path);
        let remedy = "name a path by --slow that the application answers with 2xx, after a while";
        Finding::problem(CHECK, found, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(alone: u64, kept: u64, left: u64) -> Answer {
        let time = Duration::from_millis;
        Times { alone: time(alone), kept: time(kept), left: time(left) }.judge()
    }

    #[test]
    fn beside_work_that_stopped_it_is_as_fast_as_alone() {
        assert_eq!(judged(1000, 1800, 1010), Answer::Stops);
        assert_eq!(judged(1000, 1800, 950), Answer::Stops);
    }

    #[test]
    fn beside_work_that_goes_on_it_is_as_slow_as_beside_others() {
        assert_eq!(judged(1000, 1800, 1790), Answer::GoesOn);
        assert_eq!(judged(1000, 1800, 2500), Answer::GoesOn);
    }

    #[test]
    fn what_lies_between_is_said_to_lie_between() {
        assert_eq!(judged(1000, 1800, 1400), Answer::Partly);
    }

    #[test]
    fn who_is_not_slowed_by_a_crowd_tells_nothing() {
        assert_eq!(judged(1000, 1100, 1000), Answer::HasRoom);
        assert_eq!(judged(1000, 900, 3000), Answer::HasRoom);
    }
}
