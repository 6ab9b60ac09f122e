//! Active health checks: a `GET` to each server at intervals.
//!
//! The probes run on a thread of their own, so a server that hangs delays neither requests nor
//! other probes. A status from 200 to 399 counts as healthy. The same thread looks up the names of
//! servers.

use std::future::poll_fn;
use std::sync::Arc;

use bywash_message::{Fields, Framing};
use bywash_units::TimeSpan;
use futures_util::future::join_all;
use http::{Method, StatusCode};
use tokio::sync::{mpsc, watch};

use crate::io::upload::Upload;
use crate::process::lifecycle::Lifecycle;
use crate::process::local_fault::LocalFault;
use crate::process::memory::Memory;
use crate::process::runtime;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::upstream::health::Schedule;
use crate::upstream::{Exchange, MOST_HEADS, Outbound, SharedUpstreams, UpstreamError};

/// Probes servers and looks up their names until the gateway drains. Returns an error if the
/// runtime cannot be created.
pub(super) fn run(
    shared: &Arc<Shared>,
    settings: watch::Receiver<Arc<Settings>>,
    lifecycle: watch::Receiver<Lifecycle>,
) -> std::io::Result<()> {
    let runtime = runtime::local()?;
    let probes = probe(Arc::clone(shared), settings.clone(), lifecycle.clone());
    let looks_up = look_up(Arc::clone(shared), settings, lifecycle);
    runtime.block_on(async { tokio::join!(probes, looks_up) });
    // A name look-up without an answer occupies a thread of the runtime, but must not delay the end
    // of this one.
    runtime.shutdown_background();
    Ok(())
}

async fn probe(
    shared: Arc<Shared>,
    mut settings: watch::Receiver<Arc<Settings>>,
    mut lifecycle: watch::Receiver<Lifecycle>,
) {
    loop {
        let current = Arc::clone(&settings.borrow_and_update());
        tokio::select! {
            () = rounds(&shared, &current) => {}
            changed = settings.changed() => if changed.is_err() { return },
            _ = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Drains) => return,
        }
    }
}

/// Keeps the addresses of the current servers' names up to date until the gateway drains.
async fn look_up(
    shared: Arc<Shared>,
    mut settings: watch::Receiver<Arc<Settings>>,
    mut lifecycle: watch::Receiver<Lifecycle>,
) {
    loop {
        let current = Arc::clone(&settings.borrow_and_update());
        let every = current.config.upstream.resolve_every.to_std();
        let names = current.upstreams.names();
        let all = join_all(names.map(|name| name.keep(every, &shared.metrics)));
        tokio::select! {
            // Without names there is nothing to do until the settings change.
            () = async { all.await; std::future::pending().await } => {}
            changed = settings.changed() => if changed.is_err() { return },
            _ = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Drains) => return,
        }
    }
}

/// Probes the servers of these settings at intervals. Never returns; the caller drops the future
/// when the settings change.
async fn rounds(shared: &Shared, settings: &Settings) {
    let health = &settings.config.upstream.health;
    let Some(path) = &health.path else { return std::future::pending().await };
    let upstreams = &settings.upstreams;
    let count = upstreams.list().len();
    let mut schedule = Schedule::new(count, health.interval, health.timeout, shared.driver.now());
    let (done, mut finished) = mpsc::unbounded_channel();
    loop {
        let now = shared.driver.now();
        // Read responses before checking deadlines, because this thread may have been late, and not
        // the server.
        while let Ok((server, is_well)) = finished.try_recv() {
            match is_well {
                _ if !schedule.answered(server, now) => {}
                Ok(is_well) => upstreams.servers.probed(server, now, is_well),
                // The fault is on this machine, so the server was not asked.
                Err(fault) => shared.metrics.local_fault(fault),
            }
        }
        for server in schedule.expired(now).collect::<Vec<_>>() {
            upstreams.servers.probed(server, now, false);
        }
        for server in schedule.due(now).collect::<Vec<_>>() {
            let (upstreams, path) = (Arc::clone(upstreams), path.clone());
            let memory = Arc::clone(&shared.memory);
            let (limit, done) = (health.timeout, done.clone());
            tokio::task::spawn_local(async move {
                let asked = ask(&upstreams, server, &path, &memory);
                let asked = tokio::time::timeout(limit.to_std(), asked);
                let is_well = asked.await.unwrap_or(Ok(false));
                // The receiver may be gone because the settings have changed.
                let _ = done.send((server, is_well));
            });
        }
        let pause = schedule.next().since(shared.driver.now()).to_std();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Some(result) = finished.recv() => drop(done.send(result)),
        }
    }
}

/// Probes a server once. Returns whether it is healthy, or why this machine could not probe it.
async fn ask(
    upstreams: &SharedUpstreams,
    server: usize,
    path: &str,
    memory: &Arc<Memory>,
) -> Result<bool, LocalFault> {
    let link = match upstreams.connect(server, FOREVER, memory).await {
        Ok(link) => link,
        Err(UpstreamError::Local(fault)) => return Err(fault),
        Err(_) => return Ok(false),
    };
    let mut fields = Fields::new();
    fields.push(b"Host", upstreams.list()[server].authority().as_bytes());
    fields.push(b"User-Agent", b"bywash-health");
    let outbound = Outbound {
        method: &Method::GET,
        target: path,
        fields: &fields,
        framing: Framing::None,
        takes_trailers: false,
        upgrade: None,
    };
    let mut exchange = Exchange::begin(link, &outbound, Upload::none());
    // Interim responses, such as 103, say nothing about health.
    for _ in 0..MOST_HEADS {
        let answer = poll_fn(|cx| exchange.poll_head(cx)).await;
        let Ok(status) = answer.map(|answer| answer.status) else { return Ok(false) };
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(status.is_success() || status.is_redirection());
        }
    }
    Ok(false)
}

/// A time limit for connecting that has no effect, because the probe as a whole has its own.
const FOREVER: TimeSpan = TimeSpan::from_secs(3600);
