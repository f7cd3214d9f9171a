// train(): as a chief with local workers, or as a worker of a chief elsewhere.
#include <fmt/format.h>
#include <motley/train.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

#include "library/failures.h"
#include "library/in_process_cluster.h"

namespace motley {
namespace {

constexpr std::size_t shortest_token = 16;  // bytes; as for the program's --token-file

std::string default_node() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return fmt::format("worker-{}", getpid());
  return fmt::format("{}-{}", host.data(), getpid());
}

Trained train_as_chief(const Session& session, const Job& job, const MakeObjective& make_objective) {
  Objective objective = make_objective();
  if (const Outcome good = library::check_objective(objective); !good) library::throw_failure(good.error());
  std::string text = library::value_or_throw(library::resolve_job(job, objective));
  config::Job read = library::value_or_throw(config::parse_job(text, job.name));
  library::InProcessCluster cluster(session, make_objective, std::move(text), std::move(read));
  return library::value_or_throw(cluster.run(std::move(objective)));
}

Trained train_as_worker(const Session& session, const MakeObjective& make_objective) {
  boost::asio::io_context event_loop;
  runtime::WorkerProcessOptions options;
  options.chief = library::value_or_throw(transport::parse_address(session.join));
  options.transport.token = session.token;
  options.node = session.node.empty() ? default_node() : session.node;
  options.reconnect.patience = std::chrono::milliseconds(static_cast<std::int64_t>(session.patience_s * 1e3));
  const std::string name = options.node;
  runtime::WorkerProcess worker(
      event_loop, std::move(options),
      [&make_objective, name](const std::string& job) -> Result<runtime::WorkerSetup> {
        auto program = library::program_source(make_objective);
        if (!program) return program.error();
        return engine::prepare_worker(job, name, std::move(*program));
      },
      [&session, name](const std::string& sentence) {
        if (session.log) session.log(fmt::format("{}: {}", name, sentence));
      });
  std::optional<Outcome> ended;
  worker.start([&](Outcome outcome) {
    ended = std::move(outcome);
    event_loop.stop();
  });
  const std::stop_callback on_stop(session.stop, [&] { boost::asio::post(event_loop, [&] { worker.leave(); }); });
  event_loop.run();
  if (ended && !*ended) library::throw_failure(ended->error());
  Trained trained;
  trained.stopped = session.stop.stop_requested();
  return trained;
}

}  // namespace

Trained train(const Session& session, const Job& job, const MakeObjective& make_objective) {
  if (!session.token.empty() && session.token.size() < shortest_token)
    throw Failure(Failure::Kind::bad_input,
                  fmt::format("token: found a secret of {} bytes, expected at least {}; make one: head -c 32 /dev/urandom | base64 > token",
                              session.token.size(), shortest_token));
  if (!make_objective) throw Failure(Failure::Kind::bad_input, "train: found no objective, expected a function that makes one");
  if (session.join.empty()) return train_as_chief(session, job, make_objective);
  return train_as_worker(session, make_objective);
}

}  // namespace motley
