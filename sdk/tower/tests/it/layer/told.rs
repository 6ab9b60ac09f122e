//! Tests of which handlers answer for themselves, because they have learned of the termination.

use super::*;
use crate::Search;

#[tokio::test(start_paused = true)]
async fn the_handlers_own_words_come_first() {
    let site = Site::new(secs(1), secs(9));
    let answer = site.run(get(), |request| async move {
        // The checkpoint comes before the layer's own check, so the handler learns of the
        // termination first.
        sleep(secs(9)).await;
        assert!(token(&request).checkpoint().is_err());
        // The handler may take time for its own clean-up.
        sleep(secs(5)).await;
        Ok(Response::new(Body::from("own words")))
    });
    assert_eq!(text(answer.await).await, (StatusCode::OK, "own words".into()));
}

/// Checks a checkpoint on another thread that comes before the layer's own check. It does not let
/// the handler answer.
#[tokio::test(start_paused = true)]
async fn who_is_told_elsewhere_is_dropped_on_time() {
    let search = Search::new();
    let layer = TerminateLayer::new(&search.controller, "search").unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let mut service = layer.layer(Handler(|request| {
        tell.send(token(&request)).unwrap();
        pending::<Answer>()
    }));
    let running = service.call(get());
    search.goes(secs(9));
    assert!(told.recv().unwrap().checkpoint().is_err());
    let answer = timeout(secs(100), running).await.expect("it is dropped");
    assert_eq!(text(answer).await.0, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(search.stats().lost, 1);
}

#[tokio::test(start_paused = true)]
async fn whose_thread_is_told_is_dropped_on_time() {
    let search = Arc::new(Search::new());
    let layer = TerminateLayer::new(&search.controller, "search").unwrap();
    let mut service = layer.layer(Handler(|request| {
        let search = search.clone();
        async move {
            let token = token(&request);
            search.goes(secs(9));
            // The checkpoint runs on another thread while this thread polls the handler.
            assert!(std::thread::spawn(move || token.checkpoint()).join().unwrap().is_err());
            pending::<Answer>().await
        }
    }));
    let running = service.call(get());
    let answer = timeout(secs(100), running).await.expect("it is dropped");
    assert_eq!(text(answer).await.0, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(search.stats().lost, 1);
}

/// Checks that a service gives its own response if a checkpoint in `call` told it of its
/// termination, before it returned its future. The layer does not drop that future.
#[tokio::test(start_paused = true)]
async fn who_is_told_when_it_is_called_has_the_last_word() {
    let search = Search::new();
    let layer = TerminateLayer::new(&search.controller, "search").unwrap();
    let mut service = layer.layer(Handler(|request| {
        search.goes(secs(9));
        let told = token(&request).checkpoint();
        async move {
            assert!(told.is_err());
            sleep(secs(50)).await;
            ok().await
        }
    }));
    assert_eq!(text(service.call(get()).await).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn who_is_told_at_checkpoints_only_learns_there_that_its_client_has_left() {
    let site = Site::new(secs(1), secs(9));
    let told = left_by_its_client(&site, Token::only_at_checkpoints).await;
    assert_eq!(told.await.unwrap().unwrap_err().reason, Reason::ClientLeft);
}

#[tokio::test(start_paused = true)]
async fn to_read_that_it_is_over_changes_nothing() {
    let site = Site::new(secs(1), secs(9));
    // The handler reads the state before the layer's own check, and so learns of the termination
    // first.
    let reads = async |request: Request<()>| {
        sleep(secs(9)).await;
        assert!(token(&request).is_terminated());
        assert_eq!(token(&request).reason(), None);
    };
    let answer = site.run(get(), |request| async move {
        reads(request).await;
        ok().await
    });
    assert_eq!(text(answer.await).await.0, StatusCode::OK);
    assert_eq!((site.stats().lost, site.stats().terminated), (0, 0), "it was served");
    let waits = site.run(get(), |request| async move {
        reads(request).await;
        pending().await
    });
    let answer = timeout(secs(100), waits).await.expect("it is dropped");
    assert_eq!(text(answer).await.0, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!((site.stats().lost, site.stats().terminated), (1, 1));
}
