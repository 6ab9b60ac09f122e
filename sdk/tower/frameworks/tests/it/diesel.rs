//! Tests of leases with connections of diesel-async and its pool of deadpool, and with blocking
//! connections of diesel.

use bywash_tower::{DatabaseName, Leased, Reason, Token};
use diesel::dsl::{select, sql};
use diesel::sql_types::BigInt;
use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::{AsyncMysqlConnection, AsyncPgConnection, RunQueryDsl};

use crate::site::{DatabaseKind, Site};

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

            async fn lease(
                site: &Site,
                token: &Token,
                pool: &Pool<$connection>,
            ) -> (u64, Leased<Connection>) {
                let mut connection = pool.get().await.unwrap();
                let query = select(sql::<BigInt>($number));
                let number = query.get_result::<i64>(&mut connection).await.unwrap();
                let number = number.cast_unsigned();
                let (shop, close) = (shop(), |connection| drop(Object::take(connection)));
                let leased = site.stop_client.lease(token, &shop, number, connection, close);
                (number, leased.await.unwrap())
            }

            async fn run(connection: &mut Connection, query: &str) -> diesel::QueryResult<usize> {
                diesel::sql_query(query).execute(connection).await
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_query_ends_with_its_request_and_its_connection_serves_others() {
                let Some((site, pool)) = site() else { return };
                let token = site.request("r1");
                let (number, mut leased) = lease(&site, &token, &pool).await;
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
                let (again, leased) = lease(&site, &site.request("r2"), &pool).await;
                assert_eq!(again, number);
                drop(leased.release().await.unwrap());
                assert_eq!(site.stop_client.stats().closed, 0);
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_future_that_is_dropped_leaves_no_query_and_its_connection_is_closed() {
                let Some((site, pool)) = site() else { return };
                let token = site.request("r1");
                let (number, mut leased) = lease(&site, &token, &pool).await;
                let handling = tokio::spawn(async move {
                    let _end = run(&mut leased, site.kind.long()).await;
                });
                let watch = site.watch().await;
                watch.until_works(number).await;
                token.leave();
                handling.abort();
                watch.until_rests(number).await;
                let (again, leased) = lease(&site, &site.request("r2"), &pool).await;
                assert_ne!(again, number);
                drop(leased.release().await.unwrap());
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn of_two_requests_that_share_a_connection_only_the_stopped_one_is_hit() {
                let Some((site, pool)) = site() else { return };
                let query = site.kind.long().replace("20", "0.003");
                let mut hit = 0;
                for round in 0..200_u64 {
                    let victim = site.request(&format!("a{round}"));
                    let (_, mut leased) = lease(&site, &victim, &pool).await;
                    let stop = async {
                        // Stop at a different moment of the query in each round, in some after its
                        // end.
                        tokio::time::sleep(std::time::Duration::from_micros(round * 25)).await;
                        victim.leave();
                    };
                    let (end, ()) = tokio::join!(run(&mut leased, &query), stop);
                    hit += u32::from(end.is_err());
                    drop(leased.release().await);
                    let innocent = site.request(&format!("b{round}"));
                    let (_, mut leased) = lease(&site, &innocent, &pool).await;
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

/// Checks a blocking connection. Its guard is in the thread, so a future that is dropped leaves
/// both to the thread, until the daemon has cancelled the query.
#[cfg(feature = "libpq")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_query_ends_with_its_request() {
    use diesel::Connection;

    let Some(site) = Site::new(DatabaseKind::Postgres) else { return };
    let url = format!("postgres://shop:lab@{}/shop", site.address);
    let mut connection = diesel::PgConnection::establish(&url).unwrap();
    for name in ["r1", "r2"] {
        let query = select(sql::<BigInt>("pg_backend_pid()::int8"));
        let number = diesel::RunQueryDsl::get_result::<i64>(query, &mut connection).unwrap();
        let (number, token) = (number.cast_unsigned(), site.request(name));
        let leased = site.stop_client.lease(&token, &shop(), number, connection, drop).await;
        let mut leased = leased.unwrap();
        let long = site.kind.long();
        let handling = tokio::task::spawn_blocking(move || {
            let query = diesel::sql_query(long);
            let end = diesel::RunQueryDsl::execute(query, &mut *leased);
            (leased, end)
        });
        site.watch().await.until_works(number).await;
        token.leave();
        let (leased, end) = handling.await.unwrap();
        end.unwrap_err();
        assert_eq!(token.checkpoint().unwrap_err().reason, Reason::ClientLeft);
        connection = leased.release().await.expect("nothing is aimed at it");
    }
}
