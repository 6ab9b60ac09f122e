//! A middleware for actix-web that ends requests by the layer for tower. To use it, copy this file.
//!
//! The middleware sees the error of a handler as [`HandlerError`], because the usual error types of
//! actix-web hide their source.
//!
//! The layer needs a future that is `Send`, and a handler's future in actix-web is not. A worker
//! polls and drops it on its own thread, which is all that `SendWrapper` asks for. The layer also
//! needs the request and the response of the crate `http`. So it gets a copy of the head, and a
//! response whose body is the answer of actix-web.
//!
//! If the layer lets a handler go on after its client has left, the handler runs as a task of
//! tokio. `actix_web::rt::spawn` panics there, because it needs the `LocalSet` of a worker. Use
//! `tokio::spawn` in such a handler.

use std::error::Error as StdError;
use std::fmt;
use std::iter::successors;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::{ErrorBadRequest, InternalError};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpResponse, ResponseError, web};
use bytes::Bytes;
use bywash_tower::{TerminateLayer, Terminated, Token};
use http::{Request, Response};
use send_wrapper::SendWrapper;
use tower::{Layer, ServiceExt, service_fn};

/// Any error of a handler. If the request is over and [`Terminated`] is the error or one of its
/// sources, the layer answers with 504. Otherwise the answer is 500.
#[derive(Debug)]
pub struct HandlerError(Box<dyn StdError>);

impl<E: StdError + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for HandlerError {}

impl HandlerError {
    fn tells_of_termination(&self) -> bool {
        successors(Some(&*self.0), |&error| error.source()).any(<dyn StdError>::is::<Terminated>)
    }
}

enum Answer<B> {
    Handler(Result<ServiceResponse<B>, Error>),
    Layer(Bytes),
}

impl<B> From<Bytes> for Answer<B> {
    fn from(body: Bytes) -> Self {
        Self::Layer(body)
    }
}

/// Ends overdue requests. Use it by `middleware::from_fn(terminate)`, with the layer as
/// `web::Data`. A handler gets its token by `web::ReqData<Token>`, and returns its errors as
/// [`HandlerError`].
pub async fn terminate<B: MessageBody + 'static>(
    layer: web::Data<TerminateLayer>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let uri = request.uri().to_string();
    let mut head = Request::builder().method(request.method().as_str()).uri(uri);
    for (name, value) in request.headers() {
        head = head.header(name.as_str(), value.as_bytes());
    }
    if let Some(token) = request.extensions().get::<Token>() {
        head = head.extension(token.clone());
    }
    let head = head.body(()).map_err(ErrorBadRequest)?;
    let mut once = Some((request, next));
    let handler = service_fn(move |head: Request<()>| {
        let (request, next) = once.take().expect("the layer calls its service at most once");
        let token = head.extensions().get::<Token>().cloned();
        if let Some(token) = &token {
            request.extensions_mut().insert(token.clone());
        }
        SendWrapper::new(async move {
            let answer = next.call(request).await;
            let error = answer.as_ref().map_or_else(Some, |answer| answer.response().error());
            let over = error.and_then(|error| error.as_error::<HandlerError>());
            let over = over.filter(|error| error.tells_of_termination());
            match over.and_then(|_| token?.terminated()) {
                Some(over) => Err(over),
                None => Ok(Response::new(Answer::Handler(answer))),
            }
        })
    });
    let answer = layer.layer(handler).oneshot(head).await.map_err(HandlerError::from)?;
    let (head, answer) = answer.into_parts();
    match answer {
        Answer::Handler(answer) => answer.map(ServiceResponse::map_into_left_body),
        Answer::Layer(body) => {
            let mut response = HttpResponse::GatewayTimeout();
            for (name, value) in &head.headers {
                response.insert_header((name.as_str(), value.as_bytes()));
            }
            Err(InternalError::from_response("the request is over", response.body(body)).into())
        }
    }
}
