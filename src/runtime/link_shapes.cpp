#include "runtime/link_shapes.h"

namespace motley::runtime {
namespace {

Duration latency_of(const cluster::Spec& spec, const cluster::Node& node) {
  return node.link.latency + (node.group ? spec.groups[*node.group].uplink.latency : Duration{0});
}

}  // namespace

WorkerLink::WorkerLink(const boost::asio::any_io_executor& executor, const cluster::Spec& spec, NodeId node)
    : spec_(spec),
      latency_(latency_of(spec, spec.nodes[node.value])),
      server_bytes_per_second_(spec.server_nic.down_bytes_per_second),
      up_(std::make_shared<transport::Pipe>(executor, spec.nodes[node.value].link.up_bytes_per_second)),
      down_(std::make_shared<transport::SharedLink>(spec.nodes[node.value].link.down_bytes_per_second)) {}

transport::Shape WorkerLink::shape(std::uint32_t server) const {
  return {.up = up_,
          .beyond = {},
          .latency = latency_ + cluster::distance_of(spec_, server),
          .in = {down_},
          .peer_bytes_per_second = server_bytes_per_second_};
}

ServerLinks::ServerLinks(const boost::asio::any_io_executor& executor, const cluster::Spec& spec, ServerId server)
    : spec_(spec),
      server_(server),
      out_(std::make_shared<transport::Pipe>(executor, spec.server_nic.down_bytes_per_second)),
      in_(std::make_shared<transport::SharedLink>(spec.server_nic.up_bytes_per_second)) {
  for (const cluster::Group& group : spec.groups) {
    group_up_.push_back(std::make_shared<transport::SharedLink>(group.uplink.up_bytes_per_second));
    group_down_.push_back(std::make_shared<transport::SharedLink>(group.uplink.down_bytes_per_second));
  }
}

std::optional<transport::Shape> ServerLinks::towards(NodeId node_id) const {
  if (node_id.value >= spec_.nodes.size()) return std::nullopt;
  const cluster::Node& node = spec_.nodes[node_id.value];
  if (node.device != cluster::DeviceKind::emulated) return std::nullopt;
  transport::Shape shape;
  shape.up = out_;
  shape.latency = latency_of(spec_, node) + cluster::distance_of(spec_, server_.value);
  shape.in = {in_};
  shape.peer_bytes_per_second = node.link.up_bytes_per_second;
  if (node.group) {
    shape.beyond = {group_down_[*node.group]};
    shape.in.insert(shape.in.begin(), group_up_[*node.group]);
  }
  return shape;
}

}  // namespace motley::runtime
