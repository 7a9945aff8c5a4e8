// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The network of one node as its driver sees it: interfaces to make, and what the rest of softib
// wants of the driver. The process of the driver belongs to this node alone and is in the network
// namespace of the node, with all capabilities there.
//
// The order of a driver's run(): add() for each port that is there, set_carrier() where it has a
// link, report_ready(), then frames at the descriptors and events() until Stop. An example is
// tests/net/bridge_driver.cpp.
//
// Thread rule: one thread, that of run(); the descriptor of an interface is for any.
#pragma once

#include "base/result.h"
#include "linux/net/tap.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ib::os::net {

// Where a driver runs.
struct NodePlace {
  std::string socket;       // of softibd
  std::string runtime_dir;  // of the fabric
  std::string fabric;
  std::string node;
  bool connected_mode = false;  // of its interfaces [RFC 4755]
};

struct InterfaceSpec {
  // Its number among the InfiniBand ports of the node, counted over all HCAs: "ib0", "ib1" ...
  std::uint32_t port = 0;
  // 0: the interface of the port. Else a child of it, named after the P_Key: "ib0.8001".
  std::uint16_t pkey = 0;
  MacAddress mac{};
  LinkMtu mtu{2044};
  // For the link-local address: its interface identifier follows from the GUID [RFC 4391 8].
  std::uint64_t port_guid = 0;
};

// One interface, up (as `ip link set up`), in the beginning without carrier. It has its addresses
// and routes already: those of the node for its port, none but the link-local one for a child. What
// the kernel takes when somebody sets it down, it gets back when it is up again.
class NodeInterface {
 public:
  virtual ~NodeInterface() = default;

  virtual const Tap& tap() const = 0;
  int descriptor() const { return tap().descriptor(); }
  const std::string& name() const { return tap().name(); }
  virtual int index() const = 0;  // as if_nametoindex()

  virtual Status set_carrier(bool on) = 0;
  virtual bool has_carrier() const = 0;  // as set last
  virtual Status set_mtu(LinkMtu mtu) = 0;
};

enum class NodeEvent {
  None,    // nothing more now
  Stop,    // run() is to return: the last program has ended, or softib-net has
  Report,  // answer with send_report()
};

class NodeNetwork {
 public:
  virtual ~NodeNetwork() = default;

  virtual const NodePlace& place() const = 0;

  // Makes an interface, which remains the network's own until remove().
  // ! AlreadyExists: the name is taken; InvalidParameter: MTU, port or P_Key; as Tap::create().
  virtual Result<NodeInterface*> add(const InterfaceSpec& spec, std::string& reason) = 0;
  virtual void remove(NodeInterface& interface) = 0;

  // Programs that wait for the network of this node start now. To be called once, when the
  // interfaces are there and have carrier, or cannot have it for now (a port that is down). A
  // program waits for some seconds at most.
  virtual void report_ready() = 0;

  // Readable while an event waits (level-triggered; do not read it).
  virtual int events() const = 0;
  virtual NodeEvent take_event() = 0;
  // The state of the driver as one JSON object, for `softib ipoib`: answers one Report.
  virtual void send_report(std::string_view json) = 0;

  // A line for the log of the fabric's network (`softib ipoib` names the file).
  virtual void log(std::string_view line) = 0;
};

// A driver joins queue pairs and TAPs. softib-net makes one in each process of a node.
class NodeDriver {
 public:
  virtual ~NodeDriver() = default;
  // Returns after NodeEvent::Stop (Ok), or when it cannot go on, with the reason in words. The
  // process ends then; the interfaces of the node remain, without carrier.
  virtual Status run(NodeNetwork& network, std::string& reason) = 0;
};

}  // namespace ib::os::net
