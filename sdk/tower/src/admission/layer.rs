//! The tower layer and service of admission control: each request waits for a slot before the
//! wrapped service is called.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use bywash_engine::{ClassId, End, RequestTable};
use http::{Method, Request, Response, Uri};
use tokio::time::sleep;
use tower_layer::Layer;
use tower_service::Service;

use super::{Admission, AdmissionError, Refused, Ticket};
use crate::token::Token;

/// A layer that makes each request wait for a slot of its [`Admission`] before the wrapped service
/// is called. A request that gets no slot is answered with 503.
#[derive(Clone)]
pub struct AdmissionLayer {
    admission: Admission,
    class_of: ClassOf,
}

#[derive(Clone)]
enum ClassOf {
    One(ClassId),
    Each(Arc<Classify>),
}

type Classify = dyn Fn(&Method, &Uri) -> Option<ClassId> + Send + Sync;

impl AdmissionLayer {
    /// Creates a layer that puts all requests into one class. Returns an error if `class` is not
    /// declared in the settings.
    pub fn new(admission: &Admission, class: &str) -> Result<Self, AdmissionError> {
        let class_of = ClassOf::One(admission.class(class)?);
        Ok(Self { admission: admission.clone(), class_of })
    }

    /// Creates a layer that calls `class_of` for each request to get its class, as an index into
    /// `classes`. A request for which it returns `None` goes to the service without waiting.
    /// Returns an error if one of `classes` is not declared.
    pub fn by(
        admission: &Admission,
        classes: &[&str],
        class_of: impl Fn(&Method, &Uri) -> Option<usize> + Send + Sync + 'static,
    ) -> Result<Self, AdmissionError> {
        let known = classes.iter().map(|name| admission.class(name));
        let known = known.collect::<Result<Vec<_>, _>>()?;
        let class_of = move |method: &Method, uri: &Uri| Some(known[class_of(method, uri)?]);
        Ok(Self { admission: admission.clone(), class_of: ClassOf::Each(Arc::new(class_of)) })
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admitting<S>;

    fn layer(&self, service: S) -> Admitting<S> {
        Admitting { service, layer: self.clone() }
    }
}

/// A service whose requests wait for a slot before the wrapped service is called.
#[derive(Clone)]
pub struct Admitting<S> {
    service: S,
    layer: AdmissionLayer,
}

impl<S, B, R> Service<Request<B>> for Admitting<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: Send + 'static,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let class = match &self.layer.class_of {
            ClassOf::One(class) => Some(*class),
            ClassOf::Each(class_of) => class_of(request.method(), request.uri()),
        };
        let Some(class) = class else { return Box::pin(self.service.call(request)) };
        // Call the instance of the service that has reported ready. Its clone may not be ready.
        let ready = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, ready);
        // Join the queue now and not when the future is first polled, so that requests queue in
        // order of arrival.
        let ticket = self.layer.admission.arrive(class);
        Box::pin(async move {
            if let Err(refused) = ticket.wait().await {
                if let Some(token) = request.extensions().get::<Token>() {
                    token.refused();
                }
                return Ok(refused.answer(request.method(), request.headers()));
            }
            let answer = service.call(request).await;
            ticket.ended(if answer.is_ok() { End::ANSWERED } else { End::Failed });
            answer
        })
    }
}

impl Ticket {
    async fn wait(&self) -> Result<(), Refused> {
        let decided = poll_fn(|cx| self.poll(cx));
        let Some(max_wait) = self.driver.max_wait else { return decided.await };
        tokio::pin!(decided);
        tokio::select! {
            biased;
            decided = &mut decided => decided,
            () = sleep(max_wait) => {
                self.driver.with(RequestTable::on_timer);
                decided.await
            }
        }
    }
}
