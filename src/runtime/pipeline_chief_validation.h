// Which messages a pipeline's chief accepts from a node, beyond what wire/permissions.h allows: each speaks for the stage that is assigned
// to its node in this generation, and reports its progress in order. Pure functions.
#pragma once
#include "base/time.h"
#include "cluster/spec.h"
#include "runtime/pipeline_layout.h"
#include "runtime/stage_peers.h"
#include "wire/permissions.h"

namespace motley::runtime {

/// The chief's own state at the time of the message.
struct PipelineChiefFacts {
  const cluster::Spec& cluster;
  const PipelineLayout& layout;
  const StagePeers& peers;
  Instant now{};  // without the time in which this process could not receive
};

/// Why the message breaks the protocol; then its connection is closed before the message reaches the machine or a model.
[[nodiscard]] wire::Objection objection(const StagePeer& from, wire::Lane lane, const wire::Message& message,
                                        const PipelineChiefFacts& facts);

}  // namespace motley::runtime
