// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a control code to the handler of the HCA: one table.
#include "drivers/soft_hca/handlers.h"
#include "drivers/trace/code_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ib::drivers {
namespace {

using namespace verbs::control;

struct Entry {
  Code code;
  std::size_t out_size;
  void (*handle)(Core&, HcaFile&, io::IrpRef);
};

template <class In, void (*kHandler)(Core&, HcaFile&, const In&, io::IrpRef)>
void with(Core& core, HcaFile& file, io::IrpRef irp) {
  const auto in = irp->input<In>();
  if (!in) {
    const std::size_t got = irp->in.size();
    return fail(
        core, std::move(irp), Status::InvalidParameter,
        fmt::format("the input buffer has {} bytes, this request takes {}", got, sizeof(In)));
  }
  kHandler(core, file, *in, std::move(irp));
}

constexpr auto kTable = std::to_array<Entry>({
    {Code::QueryCa, sizeof(CaAttr), query_ca},
    {Code::QueryPort, sizeof(PortAttr), with<PortIn, query_port>},
    {Code::ModifyPort, 0, with<ModifyPortIn, modify_port>},
    {Code::QueryGid, sizeof(GidOut), with<TableIn, query_gid>},
    {Code::QueryPkey, sizeof(PkeyOut), with<TableIn, query_pkey>},
    {Code::LocalMad, sizeof(MadOut), with<MadIn, local_mad>},
    {Code::AllocPd, 0, alloc_pd},
    {Code::DeallocPd, 0, with<IndexIn, dealloc_pd>},
    {Code::RegMr, sizeof(MrOut), with<RegMrIn, reg_mr>},
    {Code::ReregMr, sizeof(MrOut), with<ReregMrIn, rereg_mr>},
    {Code::RegPhysical, sizeof(MrOut), with<PhysicalIn, reg_physical>},
    {Code::ReregPhysical, sizeof(MrOut), with<PhysicalIn, rereg_physical>},
    {Code::DeregMr, 0, with<IndexIn, dereg_mr>},
    {Code::AllocMw, sizeof(MrOut), with<AllocMwIn, alloc_mw>},
    {Code::DeallocMw, 0, with<IndexIn, dealloc_mw>},
    {Code::AllocDm, sizeof(DmOut), with<AllocDmIn, alloc_dm>},
    {Code::FreeDm, 0, with<IndexIn, free_dm>},
    {Code::QueryMr, sizeof(MrOut), with<IndexIn, query_mr>},
    {Code::CreateAh, 0, with<CreateAhIn, create_ah>},
    {Code::DestroyAh, 0, with<IndexIn, destroy_ah>},
    {Code::CreateCq, sizeof(CqOut), with<CreateCqIn, create_cq>},
    {Code::ResizeCq, sizeof(CqOut), with<ResizeCqIn, resize_cq>},
    {Code::DestroyCq, 0, with<IndexIn, destroy_cq>},
    {Code::OpenXrcd, 0, with<OpenXrcdIn, open_xrcd>},
    {Code::CloseXrcd, 0, with<IndexIn, close_xrcd>},
    {Code::CreateSrq, sizeof(SrqOut), with<CreateSrqIn, create_srq>},
    {Code::ModifySrq, sizeof(SrqOut), with<ModifySrqIn, modify_srq>},
    {Code::QuerySrq, sizeof(SrqOut), with<IndexIn, query_srq>},
    {Code::DestroySrq, 0, with<IndexIn, destroy_srq>},
    {Code::CreateQp, sizeof(QpOut), with<CreateQpIn, create_qp>},
    {Code::OpenQp, sizeof(QpOut), with<OpenQpIn, open_qp>},
    {Code::ModifyQp, sizeof(ModifyQpOut), with<ModifyQpIn, modify_qp>},
    {Code::QueryQp, sizeof(QueryQpOut), with<IndexIn, query_qp>},
    {Code::DestroyQp, 0, with<IndexIn, destroy_qp>},
    {Code::AttachMcast, 0, with<McastIn, attach_mcast>},
    {Code::DetachMcast, 0, with<McastIn, detach_mcast>},
});

constexpr std::uint32_t kFirstCode = static_cast<std::uint32_t>(Code::QueryCa);
constexpr std::uint32_t kCodes = 64;
constexpr std::uint8_t kNone = 0xff;

// The row of each code in the table.
constexpr auto kRows = [] {
  std::array<std::uint8_t, kCodes> rows{};
  rows.fill(kNone);
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    rows.at(static_cast<std::uint32_t>(kTable[i].code) - kFirstCode) = static_cast<std::uint8_t>(i);
  }
  return rows;
}();

const Entry* find_entry(std::uint32_t code) {
  const std::uint32_t at = code - kFirstCode;
  return at < kCodes && kRows[at] != kNone ? &kTable[kRows[at]] : nullptr;
}

}  // namespace

bool lets_go(Code code) {
  static constexpr auto kEnds = std::to_array<Code>(
      {Code::DeallocPd, Code::DeregMr, Code::DeallocMw, Code::FreeDm, Code::DestroyAh,
       Code::DestroyCq, Code::CloseXrcd, Code::DestroySrq, Code::DestroyQp, Code::DetachMcast});
  return std::find(kEnds.begin(), kEnds.end(), code) != kEnds.end();
}

void dispatch_hca(Core& core, HcaFile& file, io::IrpRef irp) {
  if (file.removed && !lets_go(static_cast<Code>(irp->code))) {
    return fail(core, std::move(irp), Status::DeviceRemoved,
                fmt::format("HCA {} was pulled out; close it", file.hca->name));
  }
  const Entry* const entry = find_entry(irp->code);
  if (entry == nullptr) {
    const std::uint32_t code = irp->code;
    return fail(core, std::move(irp), Status::NotSupported,
                fmt::format("an HCA has no request {}", code));
  }
  if (irp->out.size() < entry->out_size) {
    const std::size_t room = irp->out.size();
    return fail(
        core, std::move(irp), Status::InvalidParameter,
        fmt::format("the output buffer has {} bytes, the answer {}", room, entry->out_size));
  }
  entry->handle(core, file, std::move(irp));
}

}  // namespace ib::drivers
