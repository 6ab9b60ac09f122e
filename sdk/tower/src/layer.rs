//! The tower layer that drops a request's future once the request is overdue.
//!
//! Dropping a future is how Rust cancels: it frees everything that the handler holds at its present
//! `await`. A handler that must not be dropped between two awaits calls
//! [`Token::only_at_checkpoints`]. A handler that is about to write calls
//! [`Token::cancel_termination`].
//!
//! When a client leaves, the server drops the future of [`Terminating`]. A thread that works for
//! the request learns of it at its next checkpoint. If the handler has called one of the two
//! functions above, its future goes on as a tokio task.
//!
//! For the layer, the request ends with the head of the response. The layer does not touch the
//! body, which the server drops when the client leaves.

use std::any::Any;
use std::error::Error;
use std::iter::successors;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use pin_project_lite::pin_project;
use tokio::runtime::Handle as Runtime;
use tokio::time::{Instant, Sleep, sleep};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::RefusalFormat;
use crate::class::SettingError;
use crate::controller::{Controller, Handle};
use crate::request::{Brought, time_left};
use crate::terminated::Terminated;
use crate::token::Token;

/// A layer that terminates overdue requests of the wrapped service, by dropping their futures.
#[derive(Clone)]
pub struct TerminateLayer {
    class_of: ClassOf,
    trusts_deadline: bool,
    trusts_request: bool,
}

#[derive(Clone)]
enum ClassOf {
    One(Handle),
    Each(Arc<Classify>),
}

type Classify = dyn Fn(&Method, &Uri) -> Option<Handle> + Send + Sync;

impl TerminateLayer {
    /// Creates a layer that puts all requests into one class. Returns an error if the controller
    /// does not have `class`.
    pub fn new(controller: &Controller, class: &str) -> Result<Self, SettingError> {
        Ok(Self::of(ClassOf::One(controller.class(class)?)))
    }

    /// Creates a layer that calls `class_of` for each request to get its class. A request for which
    /// it returns `None` goes to the service without a token and is never terminated.
    pub fn by(class_of: impl Fn(&Method, &Uri) -> Option<Handle> + Send + Sync + 'static) -> Self {
        Self::of(ClassOf::Each(Arc::new(class_of)))
    }

    const fn of(class_of: ClassOf) -> Self {
        Self { class_of, trusts_deadline: true, trusts_request: true }
    }

    /// Makes the layer ignore the deadlines in the header fields of requests
    /// ([`HEADER`](crate::HEADER)). By default it uses them.
    #[must_use]
    pub fn distrust_deadline(self) -> Self {
        Self { trusts_deadline: false, ..self }
    }

    /// Makes the layer ignore the names in the header fields of requests, and give each request a
    /// new name. Use this for servers that clients can reach without passing the gateway.
    #[must_use]
    pub fn distrust_request(self) -> Self {
        Self { trusts_request: false, ..self }
    }
}

impl<S> Layer<S> for TerminateLayer {
    type Service = Terminating<S>;

    fn layer(&self, service: S) -> Terminating<S> {
        Terminating { service, layer: self.clone() }
    }
}

/// A service that drops the futures of its overdue requests and answers them with 504.
#[derive(Clone)]
pub struct Terminating<S> {
    service: S,
    layer: TerminateLayer,
}

impl<S, B, R> Service<Request<B>> for Terminating<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: 'static,
    S::Future: Send + 'static,
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
            // If an outer layer has already given the request a token, this layer does nothing.
            _ if request.extensions().get::<Token>().is_some() => None,
            ClassOf::One(class) => Some(class.clone()),
            ClassOf::Each(class_of) => class_of(request.method(), request.uri()),
        };
        let Some(class) = class else {
            let handler = Some(Box::pin(self.service.call(request)));
            return Running { guarded: None, handler, sleep: None };
        };
        let (head, trusts) = (request.headers(), self.layer.trusts_deadline);
        let format = RefusalFormat::of(request.method(), head);
        let brought = Brought::of(head);
        let brought = if self.layer.trusts_request { brought } else { brought.nameless() };
        let token = class.begin_with(time_left(head).filter(|_| trusts), brought.named());
        let guarded = Guarded { token: token.clone(), format };
        // A request that arrives with no time left is not passed to the service.
        let handler = (!token.look()).then(|| {
            request.extensions_mut().insert(token.clone());
            Box::pin(token.run(|| self.service.call(request)))
        });
        let sleep = token.calm().filter(|_| handler.is_some()).map(sleep);
        Running { guarded: Some(guarded), handler, sleep }
    }
}

pin_project! {
    /// The future of a running request. It drops the handler's future when the request is overdue.
    pub struct Running<F>
    where
        F: Future,
        F: Send,
        F: 'static,
    {
        guarded: Option<Guarded>,
        // The handler is boxed, so that it can be moved to a task when the client has left.
        handler: Option<Pin<Box<F>>>,
        #[pin]
        sleep: Option<Sleep>,
    }

    impl<F> PinnedDrop for Running<F>
    where
        F: Future,
        F: Send,
        F: 'static,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let (Some(guarded), Some(handler)) = (this.guarded.take(), this.handler.take()) {
                guarded.left_by_its_client(handler);
            }
        }
    }
}

/// The token and the response format of a request that has not ended. If this value is dropped
/// before the response, the client has left.
struct Guarded {
    token: Token,
    format: RefusalFormat,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.token.end();
    }
}

impl Guarded {
    /// Ends a request whose client has left: it was dropped before its response. The handler
    /// continues as a task if it has asked for that. Otherwise it is dropped.
    fn left_by_its_client(self, handler: impl Future + Send + 'static) {
        // Terminate the request before the handler is dropped, so that the handler's destructors
        // see the reason.
        self.token.leave();
        if self.token.outlives_its_client()
            && let Ok(runtime) = Runtime::try_current()
        {
            runtime.spawn(async move {
                let _unread = handler.await;
                drop(self);
            });
        }
    }

    /// Returns the handler's own result. If the handler's error only passes on the termination,
    /// returns a 504 instead.
    fn answer<R: From<Bytes>, E: 'static>(
        self,
        own: Result<Response<R>, E>,
    ) -> Result<Response<R>, E> {
        match (own, self.token.terminated()) {
            (Err(error), Some(terminated)) if tells_of_termination(&error) => {
                Ok(terminated.say(self.format))
            }
            (own, _) => own,
        }
    }
}

/// Returns whether `error` is a [`Terminated`], or is a boxed error that has one among its sources.
fn tells_of_termination(error: &(impl Any + 'static)) -> bool {
    let error: &dyn Any = error;
    let boxed = error.downcast_ref::<Box<dyn Error + Send + Sync>>();
    let first = boxed.map(|error| -> &(dyn Error + 'static) { &**error });
    error.is::<Terminated>()
        || successors(first, |&error| error.source()).any(<dyn Error>::is::<Terminated>)
}

impl<F, R, E> Future for Running<F>
where
    F: Future<Output = Result<Response<R>, E>> + Send + 'static,
    R: From<Bytes>,
    E: 'static,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // A response that is ready is sent, even if the request becomes overdue at the same moment.
        // The handler is put back only if it is pending. So a handler that panics does not go on,
        // and its request does not count as left by its client.
        if let Some(mut handler) = this.handler.take() {
            let mut step = || handler.as_mut().poll(cx);
            let polled = match this.guarded.as_ref() {
                Some(guarded) => guarded.token.run(step),
                None => step(),
            };
            if let Poll::Ready(own) = polled {
                return Poll::Ready(match this.guarded.take() {
                    Some(guarded) => guarded.answer(own),
                    None => own,
                });
            }
            *this.handler = Some(handler);
        }
        let Some(Guarded { token, format }) = this.guarded.as_ref() else { return Poll::Pending };
        if this.handler.is_some() {
            ready!(poll_overdue(token, this.sleep, cx));
        }
        *this.handler = None;
        token.end();
        let terminated = token.terminated().expect("somebody has found it overdue");
        Poll::Ready(Ok(terminated.say(*format)))
    }
}

/// Returns ready when the request's future must be dropped. Otherwise arranges to be polled again
/// at the time when that may become necessary.
fn poll_overdue(
    token: &Token,
    mut sleep: Pin<&mut Option<Sleep>>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    while let Some(mut asleep) = sleep.as_mut().as_pin_mut() {
        ready!(asleep.as_mut().poll(cx));
        if token.is_only_at_checkpoints() {
            sleep.set(None);
        } else if token.is_to_be_dropped() {
            return Poll::Ready(());
        } else if let Some(calm) = token.calm().filter(|_| !token.is_told()) {
            // The request is not overdue yet. The timer's clock may be a little ahead, the
            // threshold may have risen, or a checkpoint on another thread has just reported the
            // termination.
            asleep.reset(Instant::now() + calm);
        } else {
            // No timer is needed: a checkpoint in the handler has reported the termination, and the
            // handler answers; or no time can terminate the request any more.
            sleep.set(None);
        }
    }
    Poll::Pending
}
