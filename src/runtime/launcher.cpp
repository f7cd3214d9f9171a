#include "runtime/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "runtime/exit_code.h"

namespace motley::runtime {
namespace {

constexpr int evaluation_percent = 10;  // of a GPU that nodes share: the chief's evaluations must not slow down training

namespace fs = std::filesystem;

constexpr Duration grace = from_seconds(5);  // for the other processes to end by themselves after the chief

void say(const std::string& sentence) { fmt::print(stderr, "{}\n", sentence); }

/// Names the process, the cause and its last output, so that a user can look further.
void report_exit(const std::string& name, const ChildEnd& end, const Child& child, const fs::path& log) {
  say(fmt::format("{} on this machine died: {}; its output is in {}", name, describe(end), log.string()));
  for (const std::string& line : child.last_lines()) say(fmt::format("  {} | {}", name, line));
}

}  // namespace

std::string this_program() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  return failed ? "motley" : self.string();
}

Launcher::Launcher(LauncherOptions options) : options_(std::move(options)), signals_(event_loop_, SIGINT, SIGTERM) {
  chief_.name = "chief";
}

Launcher::~Launcher() = default;

Result<LaunchOutcome> Launcher::run() {
  auto folder = TemporaryFolder::make("motley-run", "sockets");
  if (!folder) return folder.error();
  socket_folder_ = std::move(*folder);
  address_ = fmt::format("unix:{}/chief", socket_folder_.path().string());
  if (shares_gpus(options_.cluster)) {
    auto started = GpuShares::start();
    if (!started) return started.error();
    gpu_shares_ = std::move(*started);
  }
  if (const Outcome started = start_chief(options_.resume); !started) return started.error();
  wait_for_signals();
  event_loop_.run();
  if (failed_) return *failed_;
  return result_;
}

void Launcher::wait_for_signals() {
  signals_.async_wait([this](const boost::system::error_code& cancelled, int) {
    if (cancelled) return;
    if (interrupted_) {
      for (auto& [node, worker] : workers_)
        if (worker.child) worker.child->signal(SIGKILL);
      if (chief_.child) chief_.child->signal(SIGKILL);
    }
    interrupted_ = true;
    if (chief_.child && chief_.child->alive()) {
      chief_.child->signal(SIGTERM);  // it saves, tells the workers, and ends
    } else if (!over_) {
      say(fmt::format("stopped on request while the chief was down; go on with: motley train {} --resume", options_.folder.string()));
      ended_for_good(ExitCode::stopped);
    }
    wait_for_signals();
  });
}

void Launcher::after(Duration delay, std::function<void()> what) {
  timers_.push_back(std::make_unique<boost::asio::steady_timer>(event_loop_, delay));
  timers_.back()->async_wait([what = std::move(what)](const boost::system::error_code& cancelled) {
    if (!cancelled) what();
  });
}

// The chief ------------------------------------------------------------------------------------------------------------------------------

Outcome Launcher::start_chief(bool resume) {
  ChildOptions child;
  child.command = {this_program(),
                   "chief",
                   (options_.folder / "job.toml").string(),
                   "--listen",
                   address_,
                   "--out",
                   options_.folder.string(),
                   "--launched",
                   "--bulk",
                   options_.bulk,
                   "--checkpoint-every",
                   std::to_string(options_.checkpoint_every)};
  if (resume) child.command.emplace_back("--resume");
  if (options_.from_scratch && !listened_) child.command.emplace_back("--from-scratch");
  if (options_.require_target) child.command.emplace_back("--require-target");
  child.inherit_errors = true;
  if (gpu_shares_) child.environment = gpu_shares_->environment(evaluation_percent);
  ++chief_.incarnations;
  result_.reported.clear();
  auto started = Child::start(
      event_loop_, child, {[this](const std::string& line) { chief_reported(line); }, [this](const ChildEnd& end) { chief_ended(end); }});
  if (!started) return started.error();
  chief_.child = std::move(*started);
  return Done{};
}

void Launcher::chief_reported(const std::string& line) {
  if (line.starts_with("listening ")) {
    listened_ = true;
    for (std::uint32_t s = 1; s < options_.cluster.servers; ++s)
      if (!servers_[s].child || !servers_[s].child->alive())
        if (const Outcome started = start_server(s); !started) failed_ = started.error();
    if (chief_.incarnations > 1) return;  // the workers are there already and come back by themselves
    for (std::uint32_t n = 0; n < options_.cluster.nodes.size(); ++n)
      if (cluster::present_at_start(options_.cluster, NodeId{n}))
        if (const Outcome started = start_worker(n); !started) failed_ = started.error();
  } else if (line == "started") {
    start_faults();
  } else if (line.starts_with("progress ")) {
    progressed(line);
  } else if (line.starts_with("say ")) {
    result_.reported.push_back(line.substr(4));
  }
}

/// Lines of report/progress_lines.h. A version that an earlier incarnation had reached is no progress of the chief.
void Launcher::progressed(const std::string& line) {
  constexpr std::string_view to = "progress to ";
  constexpr std::string_view of = "progress of ";
  if (line.starts_with(to)) {
    const std::uint64_t version = std::strtoull(line.c_str() + to.size(), nullptr, 10);
    if (version > newest_version_) chief_.respawn.progressed();
    newest_version_ = std::max(newest_version_, version);
  } else if (line.starts_with(of)) {
    for (auto& [node, worker] : workers_)
      if (worker.name == line.substr(of.size())) worker.respawn.progressed();
  }
}

void Launcher::chief_ended(const ChildEnd& end) {
  auto& peak = result_.peak_rss_bytes["chief"];
  peak = std::max(peak, end.peak_rss_bytes);
  const bool concluded = !result_.reported.empty();  // then training has ended, and would end in the same way again
  const bool lost_a_server = end.exited && end.code == ExitCode::cluster_failed && options_.cluster.servers > 1 && !concluded;
  const bool may_come_back = (!end.exited || lost_a_server) && options_.respawn && !interrupted_;
  if (const auto pause = may_come_back ? chief_.respawn.died() : std::nullopt) {
    say(fmt::format("the chief died: {}; starting it again from its last checkpoint in {:g} s", describe(end), seconds(*pause)));
    after(*pause, [this] {
      if (over_) return;  // interrupted meanwhile
      if (const Outcome started = start_chief(true); !started) failed_ = started.error();
    });
    return;
  }
  if (may_come_back)
    say(
        fmt::format("the chief died {} times without a new version, at last: {}; giving up. Find what ends it (its output is above), then "
                    "go on with: motley train {} --resume",
                    Respawn::max_deaths, describe(end), options_.folder.string()));
  else if (!end.exited)
    say(fmt::format("the chief died: {}; go on with: motley train {} --resume", describe(end), options_.folder.string()));
  ended_for_good(nobody_left_   ? ExitCode::cluster_failed
                 : end.exited   ? end.code
                 : interrupted_ ? ExitCode::stopped
                                : ExitCode::cluster_failed);
}

void Launcher::ended_for_good(int code) {
  result_.chief_code = code;
  over_ = true;
  end_workers();
  finish_if_all_ended();
}

// The other servers ----------------------------------------------------------------------------------------------------------------------

/// A server survives its chief, as workers do, and reconnects to the next one by itself.
Outcome Launcher::start_server(std::uint32_t number) {
  Process& server = servers_[number];
  server.name = fmt::format("server-{}", number);
  open_log(server);
  ChildOptions child;
  child.command = {this_program(), "server",
                   "--join",       address_,
                   "--server",     std::to_string(number),
                   "--listen",     fmt::format("unix:{}/server-{}-{}", socket_folder_.path().string(), number, chief_.incarnations),
                   "--bulk",       options_.bulk};
  auto started = Child::start(event_loop_, child,
                              {[this, number](const std::string& line) { servers_[number].log << line << std::endl; },
                               [this, number](const ChildEnd& end) { server_ended(number, end); }});
  if (!started) return started.error();
  server.child = std::move(*started);
  return Done{};
}

void Launcher::server_ended(std::uint32_t number, const ChildEnd& end) {
  Process& server = servers_[number];
  auto& peak = result_.peak_rss_bytes[server.name];
  peak = std::max(peak, end.peak_rss_bytes);
  if (!end.good() && !over_ && chief_.child && chief_.child->alive())
    report_exit(server.name, end, *server.child, options_.folder / "logs" / (server.name + ".log"));
  finish_if_all_ended();
}

// Workers --------------------------------------------------------------------------------------------------------------------------------

Outcome Launcher::start_worker(std::uint32_t n) {
  Process& worker = workers_[n];
  const cluster::Node& node = options_.cluster.nodes[n];
  worker.name = node.name;
  worker.wanted = true;
  ++worker.incarnations;
  open_log(worker);
  ChildOptions child;
  child.command = {this_program(), options_.pipeline ? "stage" : "worker", "--join", address_, "--node", node.name, "--bulk",
                   options_.bulk};
  if (options_.pipeline) {
    child.command.emplace_back("--listen");  // another path each time: an earlier incarnation may have left its socket
    child.command.push_back(fmt::format("unix:{}/stage-{}-{}", socket_folder_.path().string(), n, worker.incarnations));
  }
  const std::string threads = std::to_string(node.device == cluster::DeviceKind::cpu ? std::max(node.device_index, 1) : 1);
  child.environment = {{"OMP_NUM_THREADS", threads}, {"OPENBLAS_NUM_THREADS", threads}};
  if (gpu_shares_)
    for (auto& variable : gpu_shares_->environment(node.gpu_percent)) child.environment.push_back(std::move(variable));
  auto started = Child::start(event_loop_, child,
                              {[this, n](const std::string& line) { workers_[n].log << line << std::endl; },
                               [this, n](const ChildEnd& end) { worker_ended(n, end); }});
  if (!started) return started.error();
  worker.child = std::move(*started);
  return Done{};
}

void Launcher::worker_ended(std::uint32_t n, const ChildEnd& end) {
  Process& worker = workers_[n];
  auto& peak = result_.peak_rss_bytes[worker.name];
  peak = std::max(peak, end.peak_rss_bytes);
  const bool asked_to_go = end.exited && end.code == ExitCode::stopped;  // by a SIGTERM that this process did not send
  if (!end.good() && !asked_to_go && worker.wanted && !over_) {
    ++result_.deaths;
    report_exit(worker.name, end, *worker.child, options_.folder / "logs" / (worker.name + ".log"));
    const bool hopeless = end.exited && end.code == ExitCode::bad_input;  // the same again
    const bool may_come_back = options_.respawn && !interrupted_ && !hopeless;
    if (const auto pause = may_come_back ? worker.respawn.died() : std::nullopt) {
      worker.comes_back = true;
      after(*pause, [this, n] {
        workers_[n].comes_back = false;
        if (over_ || !workers_[n].wanted || workers_[n].child->alive()) return;
        say(fmt::format("starting {} again", workers_[n].name));
        if (const Outcome started = start_worker(n); !started) say(started.error().message);
      });
      return;
    }
    if (may_come_back)
      say(
          fmt::format("{} died {} times without having a part in a new version, at last: {}; it is not started again. Find what ends it "
                      "({}); without it the others go on",
                      worker.name, Respawn::max_deaths, describe(end), (options_.folder / "logs" / (worker.name + ".log")).string()));
    const bool anyone = std::any_of(workers_.begin(), workers_.end(),
                                    [](const auto& w) { return w.second.comes_back || (w.second.child && w.second.child->alive()); });
    if (!anyone && !interrupted_ && chief_.child) {
      say(fmt::format("no worker is left: saving; go on with: motley train {} --resume", options_.folder.string()));
      nobody_left_ = true;
      chief_.child->signal(SIGTERM);
    }
  }
  finish_if_all_ended();
}

void Launcher::open_log(Process& process) const {
  const fs::path logs = options_.folder / "logs";
  std::error_code failed;
  fs::create_directories(logs, failed);
  if (!process.log.is_open()) process.log.open(logs / (process.name + ".log"), std::ios::app);
}

void Launcher::end_workers() {
  after(grace, [this] {
    for (auto& [number, server] : servers_)
      if (server.child) server.child->signal(SIGKILL);
    for (auto& [node, worker] : workers_)
      if (worker.child) worker.child->signal(SIGKILL);
  });
}

void Launcher::finish_if_all_ended() {
  if (!over_) return;
  for (const auto* processes : {&servers_, &workers_})
    for (const auto& [number, process] : *processes)
      if (process.child && process.child->alive()) return;
  signals_.cancel();
  event_loop_.stop();
}

// Faults ---------------------------------------------------------------------------------------------------------------------------------

void Launcher::start_faults() {
  if (faults_started_) return;
  faults_started_ = true;
  for (const cluster::Fault& fault : options_.cluster.faults)
    after(fault.at.time_since_epoch(), [this, &fault] {
      if (!over_) inject_fault(fault);
    });
}

void Launcher::inject_fault(const cluster::Fault& fault) {
  const std::uint32_t n = fault.node.value;
  Process& worker = workers_[n];
  const std::string& name = options_.cluster.nodes[n].name;
  switch (fault.kind) {
    case cluster::FaultKind::kill:
      if (!worker.child) return;
      say(fmt::format("fault: killing {}", name));
      worker.child->signal(SIGKILL);
      break;
    case cluster::FaultKind::pause:
    case cluster::FaultKind::partition:  // to the others, a stopped process and one without network look the same
      if (!worker.child) return;
      say(fmt::format("fault: stopping {} for {:g} s", name, seconds(fault.lasting)));
      worker.child->signal(SIGSTOP);
      after(fault.lasting, [this, n] {
        if (workers_[n].child) workers_[n].child->signal(SIGCONT);
      });
      break;
    case cluster::FaultKind::leave:
      if (!worker.child) return;
      say(fmt::format("fault: asking {} to leave", name));
      worker.wanted = false;
      worker.child->signal(SIGTERM);
      break;
    case cluster::FaultKind::join:
      if (worker.child && worker.child->alive()) return;
      say(fmt::format("fault: starting {}", name));
      if (const Outcome started = start_worker(n); !started) say(started.error().message);
      break;
    case cluster::FaultKind::slow:
    case cluster::FaultKind::hang: break;  // the emulated device knows
  }
}

}  // namespace motley::runtime
