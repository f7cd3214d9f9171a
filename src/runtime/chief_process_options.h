// The options of the process of a chief.
#pragma once
#include <cstddef>
#include <string>

#include "base/time.h"
#include "cluster/spec.h"
#include "protocol/chief.h"
#include "store/layout.h"
#include "store/optimizer.h"
#include "transport/address.h"
#include "transport/options.h"

namespace motley::runtime {

struct ChiefProcessOptions {
  transport::Address listen;
  transport::Options transport;
  std::string job;  // the resolved job, for pending workers and servers
  cluster::Spec cluster;
  protocol::ChiefOptions chief;
  store::Layout layout;
  OptimizerSpec optimizer;
  Duration trained_before{};                   // by the runs that this one continues
  Duration join_deadline = from_seconds(120);  // a pending connection that sends nothing for so long is closed
  std::size_t store_threads = 0;               // see ShardHost
};

}  // namespace motley::runtime
