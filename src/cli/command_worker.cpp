// motley worker --join HOST:PORT: runs one worker of a cluster. The chief sends it the job.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <csignal>
#include <memory>

#include "cli/commands.h"
#include "cli/member_arguments.h"
#include "engine/process_setup.h"
#include "engine/training.h"
#include "runtime/sha256.h"
#include "runtime/worker_process.h"

namespace motley::cli {
namespace {

struct WorkerArguments {
  MemberArguments member;
  std::string node;
  std::string device;
};

std::string default_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return fmt::format("worker-{}", getpid());
  return fmt::format("{}-{}", host.data(), getpid());
}

int run_worker(const WorkerArguments& arguments) {
  const auto link = arguments.member.chief_link();
  if (!link) return fail(link.error());
  std::optional<engine::DeviceChoice> chosen;
  if (!arguments.device.empty()) {
    const auto parsed = engine::parse_device(arguments.device);
    if (!parsed) return fail(parsed.error());
    chosen = *parsed;
  }

  boost::asio::io_context event_loop;
  runtime::WorkerProcessOptions options;
  options.chief = link->chief;
  options.transport = link->transport;
  options.node = arguments.node.empty() ? default_name() : arguments.node;
  options.reconnect.patience = link->patience;
  const std::string name = options.node;
  const auto log = log_to_stderr(name);
  runtime::WorkerProcess worker(
      event_loop, std::move(options), [name, chosen](const std::string& job) { return engine::prepare_worker(job, name, chosen); }, log);

  boost::asio::signal_set signals(event_loop, SIGINT, SIGTERM);
  bool interrupted = false;
  const auto on_signal = [&](const auto& self) -> void {
    signals.async_wait([&, self](const boost::system::error_code& cancelled, int) {
      if (cancelled) return;
      if (interrupted) _exit(ExitCode::stopped);
      interrupted = true;
      log("interrupted: returning the lease and leaving");
      worker.leave();
      self(self);
    });
  };
  on_signal(on_signal);
  return run_to_end(event_loop, worker, interrupted);
}

}  // namespace

void add_worker(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<WorkerArguments>();
  CLI::App* command = app.add_subcommand("worker", "run a worker: join a cluster and compute gradients until training ends");
  arguments->member.add_to(*command);
  command->add_option("--node", arguments->node, "name of this node in the job, or a new name (default: HOST-PID)");
  command->add_option("--device", arguments->device,
                      "cpu, cpu:THREADS, cuda:N or emulated:SAMPLES_PER_SECOND (default: the job's; else cpu)");
  command->callback([arguments, &exit_code] { exit_code = run_worker(*arguments); });
}

}  // namespace motley::cli
