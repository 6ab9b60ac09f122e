//! tower: a request's future is dropped once it is overdue.
//!
//! Dropping is how Rust cancels: it frees whatever the handler holds, at its next await. A handler that must not
//! lose its place between two awaits says [`Token::only_at_checkpoints`], one that is about to write
//! [`Token::cancel_termination`]. A client who leaves is a server that drops this future; a thread that works for
//! it learns so at its next checkpoint. With the head of the response the request has ended: its body is no
//! business of ours, and is dropped by the server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{Voice, time_left};
use crate::class::SettingError;
use crate::controller::{Controller, Handle};
use crate::token::Token;

/// Terminates overdue requests of the services that it wraps.
#[derive(Clone)]
pub struct TerminateLayer {
    class_of: ClassOf,
    trusts_deadline: bool,
}

#[derive(Clone)]
enum ClassOf {
    One(Handle),
    Each(Arc<Classify>),
}

type Classify = dyn Fn(&Method, &Uri) -> Option<Handle> + Send + Sync;

impl TerminateLayer {
    /// For requests that are all of one class.
    pub fn new(controller: &Controller, class: &str) -> Result<Self, SettingError> {
        Ok(Self { class_of: ClassOf::One(controller.class(class)?), trusts_deadline: true })
    }

    /// Asks of each request which class it is of; those of none pass untouched.
    pub fn by(class_of: impl Fn(&Method, &Uri) -> Option<Handle> + Send + Sync + 'static) -> Self {
        Self { class_of: ClassOf::Each(Arc::new(class_of)), trusts_deadline: true }
    }

    /// Ignores the deadlines that requests bring along.
    #[must_use]
    pub fn distrust_deadline(self) -> Self {
        Self { trusts_deadline: false, ..self }
    }
}

impl<S> Layer<S> for TerminateLayer {
    type Service = Terminating<S>;

    fn layer(&self, service: S) -> Terminating<S> {
        Terminating { service, layer: self.clone() }
    }
}

/// A service whose overdue requests are terminated.
#[derive(Clone)]
pub struct Terminating<S> {
    service: S,
    layer: TerminateLayer,
}

impl<S, B, R> Service<Request<B>> for Terminating<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Running<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Running<S::Future> {
        let class = match &self.layer.class_of {
            ClassOf::One(class) => Some(class.clone()),
            ClassOf::Each(class_of) => class_of(request.method(), request.uri()),
        };
        let Some(class) = class else {
            return Running {
                guarded: None,
                sleep: None,
                handler: Some(self.service.call(request)),
            };
        };
        let head = request.headers();
        let (voice, trusts) = (Voice::of(head), self.layer.trusts_deadline);
        let token = class.begin(time_left(head).filter(|_| trusts));
        // Who comes with nothing left need not begin.
        let handler = (!token.look()).then(|| {
            request.extensions_mut().insert(token.clone());
            self.service.call(request)
        });
        let sleep = token.calm().filter(|_| handler.is_some()).map(sleep);
        Running { guarded: Some(Guarded { token, voice }), sleep, handler }
    }
}

pin_project! {
    /// A request that runs.
    pub struct Running<F> {
        // The first to be dropped: so whatever the handler does when it is dropped knows why.
        guarded: Option<Guarded>,
        #[pin]
        sleep: Option<Sleep>,
        #[pin]
        handler: Option<F>,
    }
}

/// Whoever is dropped before it has answered was left by its client.
struct Guarded {
    token: Token,
    voice: Voice,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // A handler that panics has not been left.
        if !std::thread::panicking() {
            self.token.leave();
        }
        self.token.end();
    }
}

impl<F, R, E> Future for Running<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: From<Bytes>,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // What has come counts, even if it was overdue in the same moment.
        let done = this.handler.as_mut().as_pin_mut().map(|handler| handler.poll(cx));
        let Some(Guarded { token, voice }) = this.guarded.as_ref() else {
            return done.expect("a request without a token has a handler");
        };
        match done {
            Some(Poll::Ready(Ok(response))) => {
                token.end();
                return Poll::Ready(Ok(response));
            }
            Some(Poll::Ready(Err(error))) => {
                let answer = token.terminated().map(|terminated| terminated.say(*voice));
                token.end();
                return Poll::Ready(answer.ok_or(error));
            }
            Some(Poll::Pending) => ready!(poll_overdue(token, this.sleep, cx)),
            None => {}
        }
        this.handler.set(None);
        token.end();
        let terminated = token.terminated().expect("somebody has found it overdue");
        Poll::Ready(Ok(terminated.say(*voice)))
    }
}

/// Ready when the request is to be dropped.
fn poll_overdue(
    token: &Token,
    mut sleep: Pin<&mut Option<Sleep>>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    while let Some(mut asleep) = sleep.as_mut().as_pin_mut() {
        ready!(asleep.as_mut().poll(cx));
        if token.is_only_at_checkpoints() {
            sleep.set(None);
        } else if token.look() {
            return Poll::Ready(());
        } else if let Some(calm) = token.calm().filter(|_| token.reason().is_none()) {
            // The timer's clock may be a little ahead, or the threshold has changed.
            asleep.reset(Instant::now() + calm);
        } else {
            // It was terminated at a checkpoint, and its handler has the last word; or nothing terminates it.
            sleep.set(None);
        }
    }
    Poll::Pending
}
