//! Tests that the future of a watch is ready when the peer disconnects, and for no other event.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::future::{Future, poll_fn};
use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use bywash_sentry::{Interest, Reason, Watching, watch};

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

struct Unpark(Thread, AtomicUsize);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// Runs a future to completion on a thread without a runtime.
fn wait<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn is_ready(watching: &mut Watching<'_>) -> bool {
    Pin::new(watching).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Waits until all earlier events have been reported. Events are reported in the order in which
/// they happen.
fn everything_before_is_told() {
    let (client, server) = pair();
    let marker = watch(&server, Interest::default()).unwrap();
    drop(client);
    wait(marker);
}

#[test]
fn a_close_is_told() {
    let (client, server) = pair();
    let left = watch(&server, Interest::default()).unwrap();
    drop(client);
    assert_eq!(wait(left), Reason::Ended);
}

#[test]
fn a_reset_is_told_as_one() {
    let (mut client, mut server) = pair();
    server.write_all(b"unread by the client").unwrap();
    client.write_all(b"x").unwrap();
    let left = watch(&server, Interest::default()).unwrap();
    // Closing a socket with unread bytes resets the connection.
    drop(client);
    assert_eq!(wait(left), Reason::Reset);
}

#[test]
fn one_who_has_left_before_is_told_at_once() {
    let (client, server) = UnixStream::pair().unwrap();
    drop(client);
    let mut left = watch(&server, Interest::default()).unwrap();
    assert!(is_ready(&mut left));
    assert!(is_ready(&mut left), "and stays so");
}

#[test]
fn data_is_told_once_and_then_the_departure() {
    let (mut client, server) = pair();
    let interest = Interest { data: true, ..Interest::default() };
    let mut news = watch(&server, interest).unwrap();
    client.write_all(b"x").unwrap();
    assert_eq!(wait(&mut news), Reason::Data);
    client.write_all(b"y").unwrap();
    everything_before_is_told();
    assert!(!is_ready(&mut news));
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(wait(&mut news), Reason::Ended);
}

#[test]
fn a_half_close_is_none_for_one_who_takes_it() {
    let (client, server) = UnixStream::pair().unwrap();
    let interest = Interest { half_close_ok: true, ..Interest::default() };
    let mut left = watch(&server, interest).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    everything_before_is_told();
    assert!(!is_ready(&mut left));
    drop(client);
    assert_eq!(wait(left), Reason::Ended);
}

#[test]
fn one_that_is_dropped_wakes_nobody_and_another_may_follow() {
    let (client, server) = pair();
    let unpark = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut dropped = watch(&server, Interest::default()).unwrap();
    assert!(Pin::new(&mut dropped).poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(watch(&server, Interest::default()).unwrap_err().kind(), ErrorKind::AlreadyExists);
    drop(dropped);
    let next = watch(&server, Interest::default()).unwrap();
    drop(client);
    assert_eq!(wait(next), Reason::Ended);
    assert_eq!(unpark.1.load(Ordering::SeqCst), 0);
}

#[test]
fn a_waker_may_drop_what_it_wakes() {
    static SERVER: OnceLock<TcpStream> = OnceLock::new();
    struct Drops(mpsc::Sender<Reason>, std::sync::Mutex<Option<Watching<'static>>>);
    impl Wake for Drops {
        fn wake(self: Arc<Self>) {
            // This runs on the watching thread: neither the drop nor a new watch may wait for it.
            let mut watching = self.1.lock().unwrap().take().unwrap();
            let Poll::Ready(reason) =
                Pin::new(&mut watching).poll(&mut Context::from_waker(Waker::noop()))
            else {
                return;
            };
            drop(watching);
            self.0.send(reason).unwrap();
        }
    }
    let (client, server) = pair();
    let server = SERVER.get_or_init(|| server);
    let (sender, receiver) = mpsc::channel();
    let mut watching = watch(server, Interest::default()).unwrap();
    let drops = Arc::new(Drops(sender, std::sync::Mutex::new(None)));
    let waker = Waker::from(Arc::clone(&drops));
    assert!(Pin::new(&mut watching).poll(&mut Context::from_waker(&waker)).is_pending());
    *drops.1.lock().unwrap() = Some(watching);
    drop(client);
    assert_eq!(receiver.recv().unwrap(), Reason::Ended);
}

#[test]
fn a_waker_that_panics_takes_nobody_with_it() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("on purpose");
        }
    }
    let (client, server) = pair();
    let mut first = watch(&server, Interest::default()).unwrap();
    let waker = Waker::from(Arc::new(Panics));
    assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(client);
    everything_before_is_told();
    assert!(is_ready(&mut first));
}

#[test]
fn what_has_no_other_side_is_refused() {
    let kind = |result: std::io::Result<Watching<'_>>| result.unwrap_err().kind();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(kind(watch(&listener, Interest::default())), ErrorKind::NotConnected);
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(kind(watch(&datagrams, Interest::default())), ErrorKind::InvalidInput);
    let (pipe, _other) = std::io::pipe().unwrap();
    assert!(watch(&pipe, Interest::default()).is_err());
}

#[test]
fn a_socket_of_a_runtime_is_watched_beside_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let left = watch(&server, Interest::default()).unwrap();
        client.write_all(b"x").unwrap();
        server.readable().await.unwrap();
        drop(client);
        assert_eq!(left.await, Reason::Ended);
        let mut byte = [0; 2];
        assert_eq!(server.try_read(&mut byte).unwrap(), 1, "nothing was read by the watch");
    });
}

#[test]
fn threads_that_watch_and_drop_are_told_of_their_own_only() {
    const ROUNDS: usize = 300;
    let barrier = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                barrier.wait();
                for round in 0..ROUNDS {
                    let (client, server) = UnixStream::pair().unwrap();
                    let mut first = watch(&server, Interest::default()).unwrap();
                    if (round + number) % 3 == 0 {
                        drop(first);
                        first = watch(&server, Interest::default()).unwrap();
                    }
                    assert!(!is_ready(&mut first), "told of somebody else's departure");
                    let closes = thread::spawn(move || drop(client));
                    if round % 2 == 0 {
                        assert_eq!(
                            wait(poll_fn(|cx| Pin::new(&mut first).poll(cx))),
                            Reason::Ended
                        );
                    } else {
                        drop(first);
                    }
                    closes.join().unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
