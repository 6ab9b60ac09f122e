//! Tests whether the application stops work on a request when its client closes the connection.
//!
//! The test measures how long a request for a path takes: alone (the time T), and at the same time
//! as each of two crowds. The first crowd is `upstream.limit` requests that continue. It is the
//! control, which shows that a crowd slows the request at all. The second crowd is as many requests
//! that have been abandoned. If abandoned work stops, the second time is T. If it continues, the
//! second time equals the first. If the control is no slower than T, the application has room for
//! all requests and the test has no result.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bywash_command::streams::say;
use bywash_config::{Config, Departures, Scheme, Server};
use bywash_message::Fields;
use bywash_tls::Connector;
use http::Method;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::finding::Finding;
use super::http_client::{Connection, dial, millis, shown};
use crate::certificates::client_options;

const CHECK: &str = "abandoned work";

/// The maximum number of requests in a crowd. This number occupies any pool of workers for which
/// the test is useful.
const MOST: usize = 256;

/// The time for which the requests of a crowd run before the measurement.
const HEAD_START: Duration = Duration::from_millis(200);

/// The range of durations of a request that runs alone, for which the test is useful. A shorter
/// request is over before its client can leave. A longer request only makes the test longer.
const USEFUL: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(20);

/// The maximum time for each step of the test.
const LONGEST: Duration = Duration::from_secs(60);

/// The durations of one request, alone and next to each crowd.
#[derive(Clone, Copy, Debug)]
struct Times {
    alone: Duration,
    /// The duration next to the crowd that continues.
    kept: Duration,
    /// The duration next to the crowd that was abandoned.
    left: Duration,
}

/// The conclusion of the test about the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conclusion {
    Stops,
    /// The application stops only part of the abandoned work, or stops it late.
    Partly,
    GoesOn,
    /// The application has room for more requests than the crowd, so the test has no result.
    HasRoom,
}

impl Times {
    /// Draws the conclusion from the duration `left`, by the third of the range from `alone` to
    /// `kept` in which it lies. The thirds are wide, because times are imprecise on a busy machine.
    fn judge(self) -> Conclusion {
        let seconds = |time: Duration| time.as_secs_f64();
        let slowdown = seconds(self.kept) - seconds(self.alone);
        if slowdown < 0.3 * seconds(self.alone) {
            return Conclusion::HasRoom;
        }
        match (seconds(self.left) - seconds(self.alone)) / slowdown {
            part if part < 1.0 / 3.0 => Conclusion::Stops,
            part if part < 2.0 / 3.0 => Conclusion::Partly,
            _ => Conclusion::GoesOn,
        }
    }
}

/// Runs the test against the servers of `config`. It takes several times as long as a request for
/// `path`.
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
    let concurrency = (config.engine.limit.start() as usize).min(MOST);
    say(format!(
        "sending up to {} requests for {path} directly to the application, {concurrency} of them \
         at once",
        2 * concurrency + 4
    ));
    match measure(&application, concurrency).await {
        Ok(times) => report(times, concurrency, path, config.upstream.departures),
        Err(finding) => finding,
    }
}

async fn measure(application: &Arc<Application>, concurrency: usize) -> Result<Times, Finding> {
    // The first request may fill caches, so the second is measured.
    let first = application.whole().await?;
    let second = application.whole().await?;
    let alone = first.min(second);
    if !USEFUL.contains(&alone) {
        let found = format!("{} takes {} alone", application.path, shown(alone));
        let remedy = "name a path by --slow that takes from 0.5 to 20 seconds";
        return Err(Finding::warning(CHECK, found, remedy));
    }
    let mut going_on = JoinSet::new();
    for mut connection in application.open_all(concurrency).await? {
        going_on.spawn(async move { connection.answer().await.map(drop) });
    }
    tokio::time::sleep(HEAD_START).await;
    let kept = application.whole().await?;
    // The second crowd must find the application idle, so this waits for the first one to end.
    let _ = timeout(LONGEST, going_on.join_all()).await;
    let leaving = application.open_all(concurrency).await?;
    tokio::time::sleep(HEAD_START).await;
    drop(leaving);
    let left = application.whole().await?;
    Ok(Times { alone, kept, left })
}

fn report(times: Times, concurrency: usize, path: &str, departures: Departures) -> Finding {
    let Times { alone, kept, left } = times;
    let measured = format!(
        "{path} takes {} alone, {} next to {concurrency} others, {} next to {concurrency} that \
         were abandoned after {}",
        shown(alone),
        shown(kept),
        shown(left),
        shown(HEAD_START)
    );
    let finding = match times.judge() {
        Conclusion::Stops => {
            let caveat = "the application stopped (as far as this test can see)";
            Finding::ok(CHECK, format!("{measured}: {caveat}"))
        }
        Conclusion::Partly => Finding::warning(
            CHECK,
            format!("{measured}: a part of the abandoned work continued, or all of it for a while"),
            STOP,
        ),
        Conclusion::GoesOn => Finding::problem(
            CHECK,
            format!("{measured}: the abandoned work continued, unless another load interfered"),
            remedy(departures),
        ),
        Conclusion::HasRoom => Finding::unknown(
            CHECK,
            format!("{measured}: the application has room for all of them, so there is no result"),
            "upstream.limit may be too low; repeat with a limit that fills the application",
        ),
    };
    let finding = finding.with("alone_ms", millis(alone)).with("beside_others_ms", millis(kept));
    finding.with("beside_abandoned_ms", millis(left)).with("crowd", concurrency)
}

const STOP: &str = "let it stop when the client closes (ASGI: http.disconnect; Go: the request's \
                    context; Node: the response's `close`). A WSGI or CGI worker cannot: let the \
                    stop daemon (`bywash stopd`) cancel its queries";

/// Returns the remedy if the application continues abandoned work. The gateway should first count
/// this work, and the application should then stop it.
fn remedy(departures: Departures) -> String {
    match departures {
        Departures::Unnoticed => STOP.to_owned(),
        Departures::Auto | Departures::Noticed => format!(
            "set upstream.departures = \"{}\", so that a request keeps its slot while the work \
             for it continues. Then {STOP}",
            Departures::Unnoticed.name()
        ),
    }
}

/// The tested application.
struct Application {
    servers: Vec<Server>,
    tls: Option<Connector>,
    path: String,
}

impl Application {
    /// Returns the duration of one request, from connecting to the last byte of the answer.
    async fn whole(&self) -> Result<Duration, Finding> {
        let begun = Instant::now();
        let ask = async {
            let mut connection = self.begin(0).await?;
            connection.answer().await
        };
        match timeout(LONGEST, ask).await {
            Ok(Ok(answer)) if answer.status.is_success() => Ok(begun.elapsed()),
            Ok(Ok(answer)) => Err(self.fails(&format!("answers {}", answer.status.as_u16()))),
            Ok(Err(error)) => Err(self.fails(&format!("fails: {error}"))),
            Err(_) => Err(self.fails(&format!("takes more than {LONGEST:?}"))),
        }
    }

    /// Opens `size` connections at the same time, spread over all servers, and sends a request on
    /// each.
    async fn open_all(self: &Arc<Self>, size: usize) -> Result<Vec<Connection>, Finding> {
        let mut connections = JoinSet::new();
        for number in 0..size {
            let application = Arc::clone(self);
            connections.spawn(async move { application.begin(number).await });
        }
        let all: Vec<io::Result<Connection>> = match timeout(LONGEST, connections.join_all()).await
        {
            Ok(all) => all,
            Err(_) => return Err(self.fails("does not accept that many connections")),
        };
        let all: io::Result<Vec<Connection>> = all.into_iter().collect();
        all.map_err(|error| self.fails(&format!("does not accept {size} at once: {error}")))
    }

    async fn begin(&self, number: usize) -> io::Result<Connection> {
        let server = &self.servers[number % self.servers.len()];
        let (mut connection, _) = dial(server, self.tls.as_ref()).await?;
        let mut fields = Fields::new();
        fields.push(b"Host", server.authority().as_bytes());
        fields.push(b"User-Agent", b"bywash-doctor");
        fields.push(b"Connection", b"close");
        connection.ask(&Method::GET, &self.path, &fields, b"").await?;
        Ok(connection)
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

    fn judged(alone: u64, kept: u64, left: u64) -> Conclusion {
        let time = Duration::from_millis;
        Times { alone: time(alone), kept: time(kept), left: time(left) }.judge()
    }

    #[test]
    fn beside_work_that_stopped_it_is_as_fast_as_alone() {
        assert_eq!(judged(1000, 1800, 1010), Conclusion::Stops);
        assert_eq!(judged(1000, 1800, 950), Conclusion::Stops);
    }

    #[test]
    fn beside_work_that_goes_on_it_is_as_slow_as_beside_others() {
        assert_eq!(judged(1000, 1800, 1790), Conclusion::GoesOn);
        assert_eq!(judged(1000, 1800, 2500), Conclusion::GoesOn);
    }

    #[test]
    fn what_lies_between_is_said_to_lie_between() {
        assert_eq!(judged(1000, 1800, 1400), Conclusion::Partly);
    }

    #[test]
    fn work_that_continues_is_counted_if_departures_are_unnoticed() {
        let time = Duration::from_millis;
        let times = Times { alone: time(1000), kept: time(1800), left: time(1790) };
        let remedy = |departures| report(times, 2, "/report", departures).remedy.unwrap();
        let key = "upstream.departures = \"unnoticed\"";
        assert!(
            remedy(Departures::Auto).contains(key) && remedy(Departures::Noticed).contains(key)
        );
        assert!(!remedy(Departures::Unnoticed).contains(key));
    }

    #[test]
    fn who_is_not_slowed_by_a_crowd_tells_nothing() {
        assert_eq!(judged(1000, 1100, 1000), Conclusion::HasRoom);
        assert_eq!(judged(1000, 900, 3000), Conclusion::HasRoom);
    }
}
