//! Serves the clients of the daemon: by the [`LeaseBroker`], or by a relay to another daemon.

use std::rc::Rc;

use bywash_lease::{Message, Refusal};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::conversation::{Backend, Conversation};
use crate::lease_broker::LeaseBroker;
use crate::numbers::Numbers;
use crate::peer::Peer;
use crate::relay::Relay;
use crate::responder::Responder;

/// The component that handles the messages of clients. It is cheap to clone.
#[derive(Clone)]
pub(crate) enum Service {
    Broker(Rc<LeaseBroker>),
    Relay(Rc<Relay>),
}

impl Service {
    pub(crate) fn numbers(&self) -> &Numbers {
        match self {
            Self::Broker(broker) => &broker.numbers,
            Self::Relay(relay) => &relay.numbers,
        }
    }

    /// Handles a client until its connection ends.
    pub(crate) async fn serve(&self, stream: impl AsyncRead + AsyncWrite, peer: &Peer) {
        let conversation = Conversation::new();
        let _counted = Counted::new(self.numbers());
        match self {
            Self::Broker(broker) => {
                let client = BrokerClient::new(broker, peer, conversation.responder());
                conversation.run(stream, peer, client).await;
            }
            Self::Relay(relay) => {
                // Without the other daemon, the client finds its connection closed, as if there
                // were no daemon on this machine.
                if let Some(client) = relay.connect(peer, conversation.responder()).await {
                    conversation.run(stream, peer, client).await;
                }
            }
        }
    }
}

/// A client that is connected, as a metric counts it.
struct Counted<'n>(&'n Numbers);

impl<'n> Counted<'n> {
    fn new(numbers: &'n Numbers) -> Self {
        numbers.came();
        Self(numbers)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.left();
    }
}

/// A client of the broker. Its leases end when the value is dropped.
struct BrokerClient {
    broker: Rc<LeaseBroker>,
    holder: bywash_lease::Holder,
}

impl BrokerClient {
    fn new(broker: &Rc<LeaseBroker>, peer: &Peer, responder: &Responder) -> Self {
        broker.connected(peer.holder, responder.clone());
        Self { broker: Rc::clone(broker), holder: peer.holder }
    }
}

impl Backend for BrokerClient {
    const MAX_OUTSTANDING: usize = 16_384;

    fn handle(&self, peer: &Peer, line: &[u8], responder: &Responder) {
        match Message::parse(line) {
            Ok(message) => self.broker.handle(peer, responder, message),
            Err(wrong) => {
                self.broker.refuse(responder, wrong.number, Refusal::Malformed, wrong.why);
            }
        }
    }

    async fn ended(&self) {
        std::future::pending::<()>().await;
    }
}

impl Drop for BrokerClient {
    fn drop(&mut self) {
        self.broker.disconnected(self.holder);
    }
}
