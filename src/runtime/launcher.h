// Runs a whole cluster on this machine: starts a chief, the servers and a process for each node, and injects the job's faults into them.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/spec.h"
#include "runtime/child.h"
#include "runtime/gpu_shares.h"
#include "runtime/respawn.h"
#include "runtime/temporary_folder.h"

namespace motley::runtime {

/// The path of the running program, to start it as another process.
[[nodiscard]] std::string this_program();

struct LauncherOptions {
  cluster::Spec cluster;
  bool pipeline = false;         // each node is a stage, not a worker
  std::filesystem::path folder;  // of the run; holds job.toml
  std::uint64_t checkpoint_every = 500;
  std::string bulk = "auto";  // --bulk of every process
  bool resume = false;
  bool from_scratch = false;  // although there are checkpoints; only when the chief is started first
  bool respawn = false;       // processes that die are started again
  bool require_target = false;
};

struct LaunchOutcome {
  int chief_code = 0;
  std::vector<std::string> reported;                    // by the chief, for the user
  std::map<std::string, std::uint64_t> peak_rss_bytes;  // by process name; the largest of its incarnations
  std::uint64_t deaths = 0;                             // of workers, without those that ended well
};

class Launcher {
 public:
  explicit Launcher(LauncherOptions options);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Until the chief has ended for good.
  Result<LaunchOutcome> run();

 private:
  struct Process {
    std::string name;
    std::unique_ptr<Child> child;
    std::ofstream log;
    bool wanted = true;  // false: it was told to leave
    std::uint32_t incarnations = 0;
    Respawn respawn;
    bool comes_back = false;  // dead, and to be started again
  };

  Outcome start_chief(bool resume);
  Outcome start_server(std::uint32_t number);
  Outcome start_worker(std::uint32_t node);
  void server_ended(std::uint32_t number, const ChildEnd& end);
  void chief_reported(const std::string& line);
  void progressed(const std::string& line);
  void chief_ended(const ChildEnd& end);
  void ended_for_good(int code);
  void worker_ended(std::uint32_t node, const ChildEnd& end);
  void start_faults();
  void inject_fault(const cluster::Fault& fault);
  void after(Duration delay, std::function<void()> what);
  void wait_for_signals();
  void end_workers();
  void open_log(Process& process) const;
  void finish_if_all_ended();

  LauncherOptions options_;
  std::unique_ptr<GpuShares> gpu_shares_;  // if any node has one
  boost::asio::io_context event_loop_;
  boost::asio::signal_set signals_;
  TemporaryFolder socket_folder_;  // the path of a socket is limited to 107 bytes, that of a run's folder is not
  std::string address_;
  Process chief_;
  std::map<std::uint32_t, Process> servers_;  // beside the chief
  std::map<std::uint32_t, Process> workers_;
  std::uint64_t newest_version_ = 0;  // of all incarnations of the chief
  bool over_ = false;                 // the chief has ended and will not come back
  bool interrupted_ = false;
  bool nobody_left_ = false;
  bool faults_started_ = false;
  bool listened_ = false;  // a chief has listened: --from-scratch is done
  std::optional<Error> failed_;
  std::vector<std::unique_ptr<boost::asio::steady_timer>> timers_;
  LaunchOutcome result_;
};

}  // namespace motley::runtime
