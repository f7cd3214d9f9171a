// The options of a server process, and the job as a server needs it, made from the job's text.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/spec.h"
#include "runtime/reconnect.h"
#include "store/layout.h"
#include "store/optimizer.h"
#include "transport/address.h"
#include "transport/options.h"

namespace motley::runtime {

struct ServerSetup {
  cluster::Spec cluster;
  store::Layout layout;
  OptimizerSpec optimizer;
  transport::JobHash job{};
};
using PrepareServer = std::function<Result<ServerSetup>(const std::string& job)>;

struct ServerProcessOptions {
  ServerId server;
  transport::Address chief;
  transport::Address listen;
  std::string reach;  // the address that workers are told; empty: where it listens
  transport::Options transport;
  std::size_t store_threads = 0;               // see ShardHost
  Duration join_deadline = from_seconds(120);  // a connection that is no member's is closed when it is silent for longer
  ReconnectOptions reconnect{};
};

}  // namespace motley::runtime
