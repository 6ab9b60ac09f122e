//! Tests of kills during traffic: no answered click is lost, no impression is delivered twice, and
//! a kill loses only a limited number of impressions.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

use tempfile::TempDir;

use crate::binary::start;
use crate::client::Client;
use crate::site::{HOUR, banner, half_over, now, wait_for};

const KILLS: u64 = 5;

/// The counts that the clients have seen. Each array has one entry for each contract.
#[derive(Default)]
struct Seen {
    /// The number of banners in the pages that clients received.
    placed: [AtomicU64; 3],
    /// The number of clicks that were answered with their redirect.
    clicked: [AtomicU64; 3],
    /// The number of clicks without an answer. The server may or may not have counted each of them.
    unknown: [AtomicU64; 3],
}

/// Requests pages, and clicks on all banners of every second page, until the server is gone.
fn browse(address: SocketAddr, seen: &Seen, stop: &AtomicBool, progress: &mpsc::Sender<()>) {
    for number in 0.. {
        if stop.load(SeqCst) {
            break;
        }
        let Some(page) = get(address, "/ad?slots=3&concepts=car,road,sea") else { break };
        let page: serde_json::Value = serde_json::from_str(&page.1).unwrap();
        for one in page["banners"].as_array().unwrap() {
            let contract = one["banner"].as_u64().unwrap() as usize - 1;
            seen.placed[contract].fetch_add(1, SeqCst);
            if number % 2 == 1 {
                continue;
            }
            match get(address, one["click"].as_str().unwrap()) {
                Some((302, _)) => seen.clicked[contract].fetch_add(1, SeqCst),
                _ => seen.unknown[contract].fetch_add(1, SeqCst),
            };
        }
        let _ = progress.send(());
    }
}

/// Sends a GET request, and returns the status and the body. Returns `None` if the connection broke
/// or the answer was truncated.
fn get(address: SocketAddr, target: &str) -> Option<(u16, String)> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    let head = format!("GET {target} HTTP/1.1\r\nHost: site\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    // A truncated answer does not count as an answer.
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    (length.parse() == Ok(body.len())).then_some(())?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Runs the server, and kills it during traffic once clients have received `pages` pages.
fn live(database: &Path, pages: usize, seen: &Seen, selection: &str) {
    let mut program = start(database, &["--selection", selection]);
    let (address, stop) = (program.address, AtomicBool::new(false));
    let (progress, made) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            let (progress, stop) = (progress.clone(), &stop);
            scope.spawn(move || browse(address, seen, stop, &progress));
        }
        drop(progress);
        for _ in 0..pages {
            if made.recv().is_err() {
                break;
            }
        }
        program.signal("-KILL");
        stop.store(true, SeqCst);
    });
}

fn set_up(database: &Path, sizes: [u64; 3]) {
    let mut program = start(database, &[]);
    let mut client = Client::new(program.address);
    client.set_up("car,road,sea");
    // This contract is nearly over, so its schedule lets nearly all of its impressions be
    // delivered.
    let (from, to) = (now() - HOUR + 60, now() + 120);
    let fields =
        format!("advertiser=A&impressions={}&from={from}&to={to}&{}", sizes[0], banner("car"));
    client.sign(&fields);
    client.sign(&half_over(sizes[1], &banner("car,road")));
    client.sign(&half_over(sizes[2], &banner("sea")));
    // This contract has not begun, so a kill must not cost it any impression.
    let (from, to) = (now() + HOUR, now() + 2 * HOUR);
    let fields = format!("advertiser=A&impressions=100000&from={from}&to={to}&{}", banner("car"));
    client.sign(&fields);
    assert_eq!(program.signal("-TERM"), Some(0));
}

/// Requests pages until the first contract has delivered nearly all of its impressions.
fn use_up(client: &mut Client, seen: &Seen) {
    let is_used_up = || {
        for (banner, _) in client.page("slots=2&concepts=car") {
            seen.placed[banner as usize - 1].fetch_add(1, SeqCst);
        }
        let delivered = client.json("/contracts/1")["delivered"].as_u64();
        (delivered >= Some(195)).then_some(())
    };
    wait_for(is_used_up, || "the first contract is not used up".to_owned());
}

#[test]
fn a_killed_server_loses_no_answered_click_and_delivers_nothing_twice() {
    for selection in ["wheels", "scan"] {
        let folder = TempDir::new().unwrap();
        let database = folder.path().join("adserver.db");
        // The traffic and the kills use up the first contract, but not the others. The blocks of
        // the contracts have 2, 40 and 64 impressions.
        let (sizes, blocks) = ([200, 4_000, 2_000_000], [2, 40, 64]);
        set_up(&database, sizes);
        let seen = Seen::default();
        for life in 0..KILLS {
            live(&database, 60 + 37 * life as usize, &seen, selection);
        }
        let program = start(&database, &[]);
        let mut client = Client::new(program.address);
        use_up(&mut client, &seen);
        for contract in 0..3 {
            let report = client.json(&format!("/contracts/{}", contract + 1));
            let figure = |name: &str| report[name].as_u64().unwrap();
            let read = |counts: &[AtomicU64; 3]| counts[contract].load(SeqCst);
            let (placed, clicked) = (read(&seen.placed), read(&seen.clicked));
            println!("{selection}: {placed} placed, {clicked} clicked, {report}");
            assert!(clicked > 0 && figure("clicks") >= clicked, "lost a click");
            assert!(figure("clicks") <= clicked + read(&seen.unknown), "made up a click");
            assert!(placed > KILLS * blocks[contract], "nothing was reserved in time");
            assert!(placed <= figure("delivered"), "delivered what was not counted");
            assert!(figure("delivered") <= sizes[contract], "delivered too much");
            // A page that reached no client counts as delivered too. Each of the four clients may
            // have been waiting for a page when the server was killed.
            let lost = figure("delivered") - placed;
            assert!(lost <= KILLS * (blocks[contract] + 4), "a kill cost too much: {lost}");
        }
        assert_eq!(client.json("/contracts/4")["delivered"], 0);
    }
}
