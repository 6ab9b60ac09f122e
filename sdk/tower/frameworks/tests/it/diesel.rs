//! Tests of leases with connections of diesel-async and its pool of deadpool, and with blocking
//! connections of diesel.

use std::error::Error;
use std::time::Duration;

use bywash_tower::{DatabaseName, LeaseError, Leased, Reason, Terminated, Token};
use diesel::dsl::{select, sql};
use diesel::sql_types::BigInt;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::{AsyncMysqlConnection, AsyncPgConnection, RunQueryDsl};

use crate::site::{DatabaseKind, Site, leave_after};

fn shop() -> DatabaseName {
    "shop".parse().unwrap()
}

macro_rules! tests {
    ($module:ident, $kind:ident, $connection:ty, $scheme:literal, $number:literal) => {
        mod $module {
            use super::*;

            type Connection = Object<$connection>;

            /// Starts the set-up, with a pool of one connection. Returns `None` if there is no such
            /// database.
            fn site() -> Option<(Site, Pool<$connection>)> {
                let site = Site::new(DatabaseKind::$kind)?;
                let url = format!("{}://shop:lab@{}/shop", $scheme, site.address);
                let manager = AsyncDieselConnectionManager::<$connection>::new(url);
                Some((site, Pool::builder(manager).max_size(1).build().unwrap()))
            }

            async fn number(connection: &mut Connection) -> diesel::QueryResult<u64> {
                let query = select(sql::<BigInt>($number));
                query.get_result::<i64>(connection).await.map(i64::cast_unsigned)
            }

            /// The function of README.md.
            async fn lease(
                site: &Site,
                token: &Token,
                pool: &Pool<$connection>,
            ) -> Result<Leased<Connection>, Box<dyn Error>> {
                let shop = shop();
                let mut was_taken = false;
                loop {
                    token.checkpoint()?;
                    let mut connection = pool.get().await?;
                    let number = number(&mut connection).await?;
                    let close = |connection| drop(Object::take(connection));
                    match site.stop_client.lease(token, &shop, number, connection, close).await {
                        Err(LeaseError::Taken) if !was_taken => was_taken = true,
                        leased => return Ok(leased?),
                    }
                }
            }

            async fn run(connection: &mut Connection, query: &str) -> diesel::QueryResult<usize> {
                diesel::sql_query(query).execute(connection).await
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_query_ends_with_its_request_and_its_connection_serves_others() {
                let Some((site, pool)) = site() else { return };
                let token = site.request("r1");
                let mut leased = lease(&site, &token, &pool).await.unwrap();
                let number = number(&mut leased).await.unwrap();
                let watch = site.watch().await;
                // The gateway tells the daemon first, so only the daemon knows the reason.
                let stop = async {
                    watch.until_works(number).await;
                    site.gateway().await.stop("r1").await;
                };
                let (end, ()) = tokio::join!(run(&mut leased, site.kind.long()), stop);
                end.unwrap_err();
                drop(leased.release().await.expect("nothing is aimed at it"));
                let over = site.stop_client.checkpoint(&token).await.unwrap_err();
                assert_eq!(over.reason, Reason::ClientLeft);
                let mut leased = lease(&site, &site.request("r2"), &pool).await.unwrap();
                assert_eq!(self::number(&mut leased).await.unwrap(), number);
                // A later query of the stopped request does not wait for the pool.
                let later = lease(&site, &token, &pool).await.err().unwrap();
                assert!(later.is::<Terminated>());
                drop(leased.release().await.unwrap());
                assert_eq!(site.stop_client.stats().closed, 0);
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_future_that_is_dropped_leaves_no_query_and_its_connection_is_closed() {
                let Some((site, pool)) = site() else { return };
                let scene = async || {
                    let (token, kind) = (site.request("r1"), site.kind);
                    let mut leased = lease(&site, &token, &pool).await.unwrap();
                    let number = number(&mut leased).await.unwrap();
                    let handling = tokio::spawn(async move {
                        let _end = run(&mut leased, kind.long()).await;
                    });
                    let watch = site.watch().await;
                    watch.until_works(number).await;
                    token.leave();
                    handling.abort();
                    watch.until_rests(number).await;
                    let mut leased = lease(&site, &site.request("r2"), &pool).await.unwrap();
                    assert_ne!(self::number(&mut leased).await.unwrap(), number);
                    drop(leased.release().await.unwrap());
                };
                site.until_cancelled(scene).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_connection_that_another_has_leased_is_replaced() {
                let Some((site, pool)) = site() else { return };
                let number = number(&mut pool.get().await.unwrap()).await.unwrap();
                let mut other = site.gateway().await;
                other.ask(&format!("LEASE other shop {number}")).await;
                let mut leased = lease(&site, &site.request("r1"), &pool).await.unwrap();
                assert_ne!(self::number(&mut leased).await.unwrap(), number);
                drop(leased.release().await.unwrap());
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn of_two_requests_that_share_a_connection_only_the_stopped_one_is_hit() {
                let Some((site, pool)) = site() else { return };
                let query = site.kind.long().replace("20", "0.003");
                let mut hit = 0;
                for round in 0..200_u64 {
                    let victim = site.request(&format!("a{round}"));
                    let mut leased = lease(&site, &victim, &pool).await.unwrap();
                    // Stop at a different moment of the query in each round, in some after its end.
                    let stop = leave_after(victim, Duration::from_micros(round * 25));
                    let (end, ()) = tokio::join!(run(&mut leased, &query), stop);
                    hit += u32::from(end.is_err());
                    drop(leased.release().await);
                    let innocent = site.request(&format!("b{round}"));
                    let mut leased = lease(&site, &innocent, &pool).await.unwrap();
                    let end = run(&mut leased, &query).await;
                    end.unwrap_or_else(|error| panic!("round {round}: {error}"));
                    drop(leased.release().await);
                }
                println!("{:?} with diesel-async: {hit} of 200 were hit", site.kind);
                assert!(hit > 10, "only {hit} of 200 were hit at all");
            }
        }
    };
}

tests!(on_postgres, Postgres, AsyncPgConnection, "postgres", "pg_backend_pid()::int8");
tests!(on_mariadb, MariaDb, AsyncMysqlConnection, "mysql", "CAST(CONNECTION_ID() AS SIGNED)");

/// Tests of blocking connections. The guard of a connection is in the thread with it.
#[cfg(feature = "libpq")]
mod blocking {
    use diesel::{Connection, PgConnection, QueryResult, RunQueryDsl};
    use tokio::task::{JoinHandle, spawn_blocking};

    use super::*;
    use crate::site::patiently;

    type End = (Leased<PgConnection>, QueryResult<usize>);

    fn connect(site: &Site) -> PgConnection {
        PgConnection::establish(&format!("postgres://shop:lab@{}/shop", site.address)).unwrap()
    }

    /// Runs a long query in a thread, and ends its request.
    async fn stopped(site: &Site, token: &Token, mut own: PgConnection) -> JoinHandle<End> {
        let query = select(sql::<BigInt>("pg_backend_pid()::int8"));
        let number = query.get_result::<i64>(&mut own).unwrap().cast_unsigned();
        let leased = site.stop_client.lease(token, &shop(), number, own, drop).await;
        let (mut leased, long) = (leased.unwrap(), site.kind.long());
        let handling = spawn_blocking(move || {
            let end = diesel::sql_query(long).execute(&mut *leased);
            (leased, end)
        });
        site.watch().await.until_works(number).await;
        token.leave();
        handling
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_query_ends_with_its_request() {
        let Some(site) = Site::new(DatabaseKind::Postgres) else { return };
        let mut connection = connect(&site);
        for name in ["r1", "r2"] {
            let token = site.request(name);
            let (leased, end) = stopped(&site, &token, connection).await.await.unwrap();
            end.unwrap_err();
            assert_eq!(token.checkpoint().unwrap_err().reason, Reason::ClientLeft);
            connection = leased.release().await.expect("nothing is aimed at it");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_query_whose_future_is_dropped_ends_and_its_connection_is_closed() {
        let Some(site) = Site::new(DatabaseKind::Postgres) else { return };
        drop(stopped(&site, &site.request("r1"), connect(&site)).await);
        let closed = async {
            while site.stop_client.stats().closed == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        site.until_cancelled(async || {}).await;
        patiently(closed).await;
    }
}
