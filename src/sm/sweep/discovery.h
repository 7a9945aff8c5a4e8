// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Discovery: finds what is in the subnet, by Get of NodeInfo and the rest along directed routes
// [IBA1 14.4.2].
//
// A full one begins at the own node with no link. A light one reads NodeInfo and SwitchInfo of each
// switch: whether it is still the same one that the route leads to, and whether its PortStateChange
// bit is set. Only of those whose bit is set it reads the ports; behind ports that have trained
// since it looks as a full one does. Silence is reported, and the rest goes on.
//
// A narrow one does that only at switches that were named, and at the other ends of links that are
// gone. Where a link turns out to be gone, requests go by other routes at once.
#pragma once

#include "sm/subnet/problems.h"
#include "sm/subnet/subnet.h"
#include "sm/sweep/request.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::sm {

// classes: allow(methods) each attribute that is read has a step of its own
// classes: allow(members) what one discovery has seen already
class Discovery final : public Work {
 public:
  Discovery(Subnet& subnet, Problems& problems) : subnet_(subnet), problems_(problems) {}

  // Forgets all links.
  void begin_full();
  // `may_clear`: the manager is the master, and clears the bits that it has seen.
  void begin_light(bool may_clear);
  void begin_narrow();
  // SwitchInfo of one more switch, also in the middle of a discovery.
  void look_at(std::uint32_t node);
  // One more port to read, also in the middle of a discovery. `is_doubted`: what is behind it is
  // looked at again, although the link seems to have stayed as it is.
  void recheck(std::uint32_t port, bool is_doubted);
  // Reads some end ports again, others in each call: what nobody has told of is noticed, too.
  void patrol();
  bool is_done() const { return tasks_.empty() && open_ == 0 && far_ends_.empty(); }
  // It was begun as a narrow one, and nothing behind a port was looked at.
  bool is_narrow() const { return is_narrow_ && !found_.has_probed; }
  // Ports that were read, those at their other ends, and of switches port 0.
  const std::vector<std::uint32_t>& touched() const { return touched_; }
  // Routes are others now: requests under way may not arrive. Once.
  bool take_rerouted() { return std::exchange(found_.is_rerouted, false); }
  // A cable leads elsewhere than before, so that requests and answers may have been those of other
  // nodes than it seemed.
  bool has_moved() const { return found_.has_moved; }
  // A port that this manager has set up names another one as its master.
  bool has_other_writer() const { return found_.has_other_writer; }
  // Two ports seem to lead to the same one; another look tells.
  bool is_unclear() const { return found_.is_unclear; }
  // Whether there is something of nodes that are there that could not be read. The next light one
  // begins with it.
  bool has_lost() const { return !lost_.empty(); }
  // Ports whose PortInfo has IsSM, without the own one.
  std::vector<std::uint32_t> managers() const;

  std::optional<Request> next() override;
  void on_answer(const Request& request, const Answer* answer) override;

 private:
  enum Tag : std::uint32_t { kRead, kProbe, kClear, kVerify };
  void ask(std::uint16_t attribute, std::uint32_t port, std::uint32_t modifier = 0,
           Tag tag = kRead);
  void ask_ports(std::uint32_t node);
  void probe(std::uint32_t port);
  void begin();
  bool is_fresh(std::uint32_t node) const;  // not met in this discovery

  void on_own_node(const mad::NodeInfo& info);
  void meet(std::uint32_t from, const mad::NodeInfo& info);
  void notice_writer(std::uint32_t port, const mad::PortInfo& info);
  bool is_free(std::uint32_t from, std::uint32_t arrival);
  void verify(std::uint32_t port, const mad::NodeInfo& info);
  bool has_moved(std::uint32_t from, std::uint32_t arrival) const;
  void read_node(std::uint32_t node, std::uint32_t arrival);
  void read_again(std::uint32_t node, std::uint32_t arrival);
  void on_switch_info(std::uint32_t port, const mad::SwitchInfo& info);
  void on_port_info(std::uint32_t port, const mad::PortInfo& info);
  void follow_link(std::uint32_t port);
  void lose_link(std::uint32_t port);
  void look_at_far_ends();
  void on_pkeys(const Request& request, const mad::SmpData& data);
  void on_silence(const Request& request);
  void report(ProblemKind kind, std::uint32_t port, std::string text);

  struct Task {
    std::uint32_t port = 0;
    std::uint32_t modifier = 0;
    std::uint16_t attribute = 0;
    Tag tag = kRead;
  };
  // A switch at the other end of a link that is gone, and the port that leads to it, if it was
  // read.
  struct FarEnd {
    std::uint32_t node = 0;
    std::uint32_t read_port = kNone;
  };
  Subnet& subnet_;
  Problems& problems_;
  std::deque<Task> tasks_;
  std::uint32_t next_on_patrol_ = 0;
  std::vector<Task> lost_;
  std::uint32_t open_ = 0;  // requests that wait for an answer
  bool is_light_ = false;
  bool is_narrow_ = false;
  bool may_clear_ = false;
  // In this discovery: nodes that a full one has met; ports that were looked behind, that were
  // doubted.
  std::vector<bool> is_met_, is_probed_, is_doubted_;
  std::vector<std::uint32_t> touched_;
  std::vector<FarEnd> far_ends_;
  // By port that seems to lead where another one does: that one.
  std::unordered_map<std::uint32_t, std::uint32_t> conflicts_;
  struct {
    bool has_moved = false;
    bool is_unclear = false;
    bool has_other_writer = false;
    bool has_probed = false;
    bool is_rerouted = false;
  } found_;
};

}  // namespace ib::sm
