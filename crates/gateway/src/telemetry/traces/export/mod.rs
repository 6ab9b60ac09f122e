//! Exports spans to an OpenTelemetry collector, by OTLP over HTTP.
//!
//! A request puts its span into a bounded channel; a span that finds the channel full is dropped
//! and counted. A separate thread batches, translates and sends the spans. The exporter of the
//! library implements the protocol, retries when the collector asks for that, and gives up after
//! [`PATIENCE`]. Spans that it gives up are counted with the dropped ones. So a collector that
//! hangs costs spans, but never delays a request.

mod post;
mod translate;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bywash_config::Collector;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use prometheus_client::metrics::counter::Counter;
use tokio::runtime::Runtime;

use super::Ended;
use crate::error::GatewayError;

/// The maximum number of spans that wait to be sent. Further ones are dropped and counted.
const WAITING: usize = 4096;

/// The maximum number of spans in one message.
const BATCH: usize = 512;
/// The maximum time for which the first span of a message waits for others.
const COLLECTS: Duration = Duration::from_secs(1);

/// The maximum time for sending one message, including retries.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum time for which [`Tracer::flush`] waits.
const LAST_SPANS: Duration = Duration::from_secs(1);

/// The queue of spans to export. The exporting thread ends when this is dropped.
pub(crate) struct Tracer {
    notes: SyncSender<Note>,
    dropped: Counter,
}

enum Note {
    Span(Box<Ended>),
    /// Send the spans so far, then report that on the channel.
    Flush(SyncSender<()>),
}

impl Tracer {
    /// Starts the exporting thread. `dropped` counts the spans that do not reach the collector.
    pub(crate) fn start(
        collector: &Collector,
        dropped: &Counter,
    ) -> Result<Option<Arc<Self>>, GatewayError> {
        let broken = |error| GatewayError::Thread(std::io::Error::other(error));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(GatewayError::Thread)?;
        let exporter = exporter(collector).map_err(broken)?;
        let (notes, waiting) = sync_channel(WAITING);
        let sender = Sender { runtime, exporter, dropped: dropped.clone(), batch: Vec::new() };
        std::thread::Builder::new()
            .name("traces".into())
            .spawn(move || sender.run(&waiting))
            .map_err(GatewayError::Thread)?;
        Ok(Some(Arc::new(Self { notes, dropped: dropped.clone() })))
    }

    pub(crate) fn export(&self, ended: Ended) {
        if self.notes.try_send(Note::Span(Box::new(ended))).is_err() {
            self.dropped.inc();
        }
    }

    /// Waits, for a bounded time, until the spans so far are sent, because the process may end
    /// next.
    pub(crate) fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.notes.try_send(Note::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(LAST_SPANS);
        }
    }
}

fn exporter(collector: &Collector) -> Result<SpanExporter, ExporterBuildError> {
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(post::Client::new(collector))
        .with_endpoint(format!("http://{}/v1/traces", collector.authority()))
        .with_timeout(PATIENCE)
        .build()?;
    exporter.set_resource(&Resource::builder().with_service_name("bywash").build());
    Ok(exporter)
}

/// The state of the exporting thread.
struct Sender {
    runtime: Runtime,
    exporter: SpanExporter,
    dropped: Counter,
    batch: Vec<Ended>,
}

impl Sender {
    /// Sends batches of spans until all senders are gone.
    fn run(mut self, waiting: &Receiver<Note>) {
        while let Ok(first) = waiting.recv() {
            let end = Instant::now() + COLLECTS;
            let mut next = Ok(first);
            loop {
                match next {
                    Ok(Note::Span(span)) => self.batch.push(*span),
                    Ok(Note::Flush(done)) => {
                        self.send();
                        let _ = done.try_send(());
                    }
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
                if self.batch.len() >= BATCH {
                    break;
                }
                next = waiting.recv_timeout(end.saturating_duration_since(Instant::now()));
            }
            self.send();
        }
    }

    fn send(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let count = self.batch.len() as u64;
        let spans = self.batch.drain(..).map(|ended| translate::span(&ended)).collect();
        if self.runtime.block_on(self.exporter.export(spans)).is_err() {
            self.dropped.inc_by(count);
        }
    }
}
