// motley worker --join HOST:PORT: runs one worker of a cluster. The chief sends it the job.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/connection_arguments.h"
#include "cli/job_arguments.h"
#include "engine/process_setup.h"
#include "engine/training.h"
#include "runtime/sha256.h"
#include "runtime/worker_process.h"

namespace motley::cli {
namespace {

struct WorkerArguments {
  std::string join;
  std::string node;
  std::string device;
  double patience_s = 120;
  ConnectionArguments connection;
};

std::string default_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return fmt::format("worker-{}", getpid());
  return fmt::format("{}-{}", host.data(), getpid());
}

int work(const WorkerArguments& arguments) {
  const auto allowed = arguments.connection.transport(1 << 20);
  if (!allowed) return fail(allowed.error());
  const auto address = transport::parse_address(arguments.join);
  if (!address) return fail(address.error());
  std::optional<engine::DeviceChoice> chosen;
  if (!arguments.device.empty()) {
    const auto parsed = engine::parse_device(arguments.device);
    if (!parsed) return fail(parsed.error());
    chosen = *parsed;
  }

  boost::asio::io_context event_loop;
  runtime::WorkerProcessOptions options;
  options.chief = *address;
  options.transport = *allowed;
  options.node = arguments.node.empty() ? default_name() : arguments.node;
  options.reconnect.patience = std::chrono::milliseconds(static_cast<std::int64_t>(arguments.patience_s * 1e3));
  const std::string name = options.node;
  const auto log = [name](const std::string& sentence) {
    fmt::print(stderr, "{}: {}\n", name, sentence);
    std::fflush(stderr);
  };
  runtime::WorkerProcess worker(
      event_loop, std::move(options), [name, chosen](const std::string& job) { return engine::prepare_worker(job, name, chosen); }, log);

  boost::asio::signal_set signals(event_loop, SIGINT, SIGTERM);
  bool asked = false;
  const auto on_signal = [&](const auto& self) -> void {
    signals.async_wait([&, self](const boost::system::error_code& cancelled, int) {
      if (cancelled) return;
      if (asked) _exit(ExitCode::stopped);
      asked = true;
      log("interrupted: returning the lease and leaving");
      worker.leave();
      self(self);
    });
  };
  on_signal(on_signal);
  std::optional<Outcome> how;
  worker.start([&](Outcome outcome) {
    how = std::move(outcome);
    event_loop.stop();
  });
  event_loop.run();
  if (how && !*how) return fail(how->error());
  return asked ? ExitCode::stopped : ExitCode::done;
}

}  // namespace

void add_worker(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<WorkerArguments>();
  CLI::App* command = app.add_subcommand("worker", "run a worker: join a cluster and compute gradients until training ends");
  command->add_option("--join", arguments->join, "address of the chief: HOST:PORT or unix:PATH")->required();
  command->add_option("--node", arguments->node, "name of this node in the job, or a new name (default: HOST-PID)");
  command->add_option("--device", arguments->device,
                      "cpu, cpu:THREADS, cuda:N or emulated:SAMPLES_PER_SECOND (default: the job's; else cpu)");
  command->add_option("--patience", arguments->patience_s, "seconds without a chief after which this process gives up")
      ->capture_default_str();
  arguments->connection.add_to(*command);
  command->callback([arguments, &exit_code] { exit_code = work(*arguments); });
}

}  // namespace motley::cli
